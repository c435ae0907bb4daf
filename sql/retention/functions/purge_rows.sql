-- Deletes at most `batch_size` rows of a table that refer to a deleted row. With `clear_only`, sets their reference to
-- null instead. First deletes rows of `child_tables`, which refer to these rows by `child_columns`, within the same
-- limit. Skips rows that other transactions have locked. Returns the number of rows deleted or cleared; 0 means that
-- none are left.
create or replace function purge_rows(of_table regclass, by_column name, id integer, batch_size integer, clear_only boolean,
  child_tables regclass[], child_columns name[]) returns integer language plpgsql
  -- Forces index scans, because the start of a table may hold nothing but rows that earlier calls have deleted.
  set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
declare
  row_tids tid[];
  changed integer := 0;
  count integer;
begin
  execute format('select array(select ctid from %s where %I = $1 limit $2 for update skip locked)', of_table, by_column)
  into row_tids using id, batch_size;
  for i in 1 .. cardinality(child_tables) loop
    execute format('delete from %s where ctid = any(array(
      select c.ctid from %s p join %s c on c.%I = p.id where p.ctid = any($1) limit $2))',
      child_tables[i], of_table, child_tables[i], child_columns[i])
    using row_tids, batch_size - changed;
    get diagnostics count = row_count;
    changed := changed + count;
  end loop;
  if changed < batch_size then
    execute format(case when clear_only then 'update %1$s set %2$I = null where ctid = any($1)'
      else 'delete from %1$s where ctid = any($1)' end, of_table, by_column) using row_tids;
    changed := changed + cardinality(row_tids);
  end if;
  return changed;
end $$;
