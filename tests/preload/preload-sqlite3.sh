#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# sqlite3 under libreap-malloc: a generated database, indices, joins, transactions, dump and reload.
. "${srcdir:-.}/tests/support/preload-lib.sh"
need sqlite3

cat >"$tmp/work.sql" <<'SQL'
create table item(id integer primary key, name text, size integer, body blob);
create table link(a integer, b integer, unique(a, b));
insert into item with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000)
    select i, 'item ' || (i * 7919 % 20011), i * 31 % 977, zeroblob(i % 300) from n;
insert or ignore into link select id, id * 17 % 20000 + 1 from item;
create index by_size on item(size, name);
create index by_name on item(name);
begin; update item set size = size + 1 where id % 3 = 0; delete from item where id % 11 = 0; rollback;
begin; update item set name = upper(name) where id % 5 = 0; delete from item where id % 13 = 0; commit;
select count(*), sum(size), min(name), max(name) from item;
select size, count(*), group_concat(id) from item group by size having count(*) > 19 order by size limit 40;
select a.name, b.name from link join item a on a.id = link.a join item b on b.id = link.b order by 1, 2 limit 50 offset 9000;
with recursive reach(i) as (select 1 union select b from link, reach where a = i) select count(*) from reach;
pragma integrity_check;
vacuum;
SQL

work() {
    sqlite3 work.db <"$tmp/work.sql" && sqlite3 work.db .dump >dump.sql && sqlite3 copy.db <dump.sql &&
        sqlite3 copy.db .dump | cmp - dump.sql && cksum dump.sql
}
compare_work
