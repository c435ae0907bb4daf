-- Helpers of the seeds in their own schema. They compute sizes from `growth.share` (in percent), owners, times and
-- words. All values derive from a row's number, so equal shares give equal rows. Accounts 1, 2 and 3 already exist: the
-- admin, the big owner and the small owner.

create schema growth;

create function growth.size(whole bigint) returns integer language sql stable
  return greatest(1, round(whole * current_setting('growth.share')::numeric / 100))::integer;

-- Returns a pseudo-random number from 0 to `below` - 1.
create function growth.pick(n integer, salt integer, below integer) returns integer language sql immutable parallel safe
  return (hashint4(n # (salt * 65599)) & 2147483647) % below;

-- Returns the owner of the n-th of `total` rows. At any size, the small owner has about 70 rows and the big owner
-- `bigs` percent.
create function growth.owner(n integer, total integer, bigs integer, others integer) returns integer
language sql immutable parallel safe
  return case when n % greatest(1, total / 70) = 0 then 3 when growth.pick(n, 1, 100) < bigs then 2
    else 4 + growth.pick(n, 2, others) end;

-- Returns the time of the n-th of `total` rows. The last row has the current time.
create function growth.moment(n integer, total integer, span interval) returns timestamptz language sql stable
  return now() - span * ((total - n)::float8 / total);

create function growth.id(at timestamptz) returns uuid language sql volatile
  return uuidv7(at - clock_timestamp());

-- Returns the word with this rank; rank 1 is the most frequent.
create function growth.word(rank integer) returns text language sql immutable parallel safe
  return left(translate(md5(rank::text), '0123456789', 'ghijklmnop'), 4 + rank % 5);

-- Drops the indexes of big tables before filling them, because building them afterwards is many times faster. The
-- definitions come from the catalog, so the seeds need not list them.
create table growth.dropped_index (definition text not null);

create procedure growth.drop_indexes(of regclass) language plpgsql as $$
declare
  index record;
begin
  for index in
    select indexrelid::regclass as name, pg_get_indexdef(indexrelid) as definition from pg_index
    where indrelid = of and not exists (select from pg_constraint where conindid = indexrelid)
  loop
    insert into growth.dropped_index values (index.definition);
    execute 'drop index ' || index.name;
  end loop;
end $$;

create procedure growth.restore_indexes() language plpgsql as $$
declare
  made text;
begin
  for made in delete from growth.dropped_index returning definition loop
    execute made;
  end loop;
end $$;
