-- Deletes rows of a table that refer to a deleted row, `batch_size` at most; with `clear_only`, sets their reference to
-- null instead. First deletes rows of `child_tables`, which refer to these rows by `child_columns`, from the same
-- budget. Skips rows that other transactions have locked. Returns the number of rows deleted or cleared; 0: there are
-- no more.
create or replace function purge_rows(of_table regclass, by_column name, id integer, most integer, clears boolean,
  below regclass[], below_by name[]) returns integer language plpgsql
  -- Forces index scans: the start of a table may hold nothing but rows that earlier calls have deleted.
  set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
declare
  given tid[];
  gone integer := 0;
  count integer;
begin
  execute format('select array(select ctid from %s where %I = $1 limit $2 for update skip locked)', of_table, by_column)
  into given using id, most;
  for i in 1 .. cardinality(below) loop
    execute format('delete from %s where ctid = any(array(
      select c.ctid from %s p join %s c on c.%I = p.id where p.ctid = any($1) limit $2))', below[i], of_table, below[i], below_by[i])
    using given, most - gone;
    get diagnostics count = row_count;
    gone := gone + count;
  end loop;
  if gone < most then
    execute format(case when clears then 'update %1$s set %2$I = null where ctid = any($1)'
      else 'delete from %1$s where ctid = any($1)' end, of_table, by_column) using given;
    gone := gone + cardinality(given);
  end if;
  return gone;
end $$;
