#!/bin/sh
# apr_httpd.sh under the prefork MPM.
exec "${srcdir:-.}/tests/apr_httpd.sh" prefork
