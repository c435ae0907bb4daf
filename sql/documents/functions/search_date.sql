-- Returns the date with these numbers, or null if there is no such date.
create or replace function search_date(year text, month text, day text) returns date language plpgsql immutable as $$
begin
  return make_date(year::integer, month::integer, day::integer);
exception when datetime_field_overflow then
  return null;
end $$;
