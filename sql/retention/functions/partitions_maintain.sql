-- Creates missing monthly partitions of a table: from `since` to two months ahead, and those of rows in its default
-- partition. Drops months that ended `keep_days` ago; 0 drops none. Leaves a partition with a long reader, such as a
-- backup, to the next call, because all later readers would wait behind this call. Runs with its owner's rights,
-- because the workers' role cannot create or drop tables.
create or replace function partitions_maintain(of_table regclass, keep_days integer, since timestamptz default now(),
  out made integer, out dropped integer) language plpgsql
  security definer set search_path = public, pg_temp set timezone = 'utc' set lock_timeout = 0
as $$
declare
  table_name constant text := (select relname from pg_class where oid = of_table);
  time_column constant name := (select attname from pg_partitioned_table join pg_attribute on attrelid = partrelid and attnum = partattrs[0]
    where partrelid = of_table);
  default_partition constant text := format('partitions.%I', table_name || '_default');
  month timestamptz;
  partition_name text;
begin
  made := 0;
  dropped := 0;
  -- A concurrent call waits here without a timeout.
  perform pg_advisory_xact_lock(hashtextextended('millrace.partitions', 0));
  set local lock_timeout = '500ms';
  for month in execute format(
    'select generate_series(date_trunc(''month'', $1), now() + interval ''2 months'', interval ''1 month'')
     union select date_trunc(''month'', %I) from %s order by 1', time_column, default_partition) using least(since, now())
  loop
    partition_name := format('partitions.%I', table_name || to_char(month, '_YYYY_MM'));
    continue when to_regclass(partition_name) is not null;
    begin
      execute format('lock table %s in access exclusive mode', default_partition);
      execute format('create table %s (like %s including defaults including constraints)
        with (autovacuum_vacuum_insert_scale_factor = 0.02)', partition_name, of_table);
      execute format('with moved as (delete from %s where %I >= $1 and %2$I < $2 returning *) insert into %s select * from moved',
        default_partition, time_column, partition_name) using month, month + interval '1 month';
      execute format('alter table %s attach partition %s for values from (%L) to (%L)', of_table, partition_name, month, month + interval '1 month');
      made := made + 1;
    exception when lock_not_available then
      raise warning '% is in use; the next call creates %', default_partition, partition_name;
    end;
  end loop;
  for partition_name in
    select inhrelid::regclass from pg_inherits join pg_class c on c.oid = inhrelid
    where inhparent = of_table and keep_days > 0 and relname ~ '_\d{4}_\d\d$'
      and to_date(right(relname, 7), 'YYYY_MM') + interval '1 month' <= now() - make_interval(days => keep_days)
  loop
    begin
      execute format('drop table %s', partition_name);
      dropped := dropped + 1;
    exception when lock_not_available then
      raise warning '% is in use; the next call drops it', partition_name;
    end;
  end loop;
end $$;
revoke execute on function partitions_maintain(regclass, integer, timestamptz) from public;
