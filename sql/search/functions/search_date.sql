-- Returns the date with these numbers, or null if there is no such date. A year of two digits is between 1970 and 2069.
create or replace function search_date(year text, month text, day text) returns date language plpgsql immutable as $$
begin
  return make_date(case when length(year) > 2 then year::integer else year::integer + case when year < '70' then 2000 else 1900 end end,
    month::integer, day::integer);
exception when datetime_field_overflow then
  return null;
end $$;
