#!/bin/sh
# apr_httpd.sh under the worker MPM.
exec "${srcdir:-.}/tests/apr_httpd.sh" worker
