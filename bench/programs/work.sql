-- An index, joins, groups, and text put together, in memory. The tables are in the file before this one.
CREATE INDEX by_customer ON orders(customer);
CREATE INDEX by_day ON orders(day, amount);
SELECT count(*), sum(amount) FROM orders JOIN customers ON customers.id = orders.customer WHERE customers.name > 'm';
SELECT day % 12 AS month, count(DISTINCT customer), max(note), total(amount) FROM orders GROUP BY month;
SELECT length(group_concat(note, ';')), length(group_concat(upper(note) || amount)) FROM orders GROUP BY day % 7;
WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
    SELECT count(*), max(length(t)) FROM (SELECT i, group_concat(printf('%d:%x', i, i * 7)) AS t FROM n GROUP BY i % 5000);
UPDATE orders SET note = note || '-' || customer WHERE day % 3 = 0;
DELETE FROM orders WHERE day % 5 = 0;
SELECT name, n FROM (SELECT customer, count(*) AS n FROM orders GROUP BY customer) JOIN customers ON id = customer
    ORDER BY n DESC, name LIMIT 5;
