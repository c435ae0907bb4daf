-- Writes a number below 100 in Chinese.
create or replace function search_han(number integer) returns text language sql immutable parallel safe
  return case when number >= 20 then substr('二三四五六七八九', number / 10 - 1, 1) else '' end || case when number >= 10 then '十' else '' end
    || substr('一二三四五六七八九', nullif(number % 10, 0), 1);
