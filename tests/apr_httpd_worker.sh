#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# apr_httpd.sh under the worker MPM.
exec "${srcdir:-.}/tests/apr_httpd.sh" worker
