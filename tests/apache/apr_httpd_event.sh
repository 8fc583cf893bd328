#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# apr_httpd.sh under the event MPM.
exec "${srcdir:-.}/tests/apache/apr_httpd.sh" event
