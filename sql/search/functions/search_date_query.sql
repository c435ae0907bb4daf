-- Returns the query for a date in all notations: numbers in the usual orders, and the names of the month in the languages of
-- `search_months`. It does not matter what separates them.
create or replace function search_date_query(day date) returns tsquery language sql stable as $$
  select search_any_of(array(select search_phrase(search_words(notation), false) from (values
      (format('%s %s %s', y, mm, dd)), (format('%s %s %s', y, m, d)), (y || mm || dd),
      (format('%s %s %s', dd, mm, y)), (format('%s %s %s', d, m, y)), (format('%s %s %s', dd, mm, yy)), (format('%s %s %s', d, m, yy)),
      (format('%s %s %s', mm, dd, y)), (format('%s %s %s', m, d, y)), (format('%s %s %s', mm, dd, yy)), (format('%s %s %s', m, d, yy)),
      (format('%s年%s月%s日', y, m, d)), (format('%s年%s月%s日', y, mm, dd)), (format('%s년 %s월 %s일', y, m, d)), (format('%s년 %s월 %s일', y, mm, dd)),
      (format('%s thang %s nam %s', d, m, y)), (translate(y, '0123456789', '〇一二三四五六七八九') || '年' || han_m || '月' || han_d || '日'),
      (case when day >= '2019-05-01' then format('令和%s年%s月%s日', y::integer - 2018, m, d)
        when day >= '1989-01-08' then format('平成%s年%s月%s日', y::integer - 1988, m, d) end)) given (notation)
    where notation is not null)
    || array[format('(%1$s | %2$s) <-> (%3$s)', days, format('(%s) <-> (de | del | of | d)', days), name_year)::tsquery,
      format('(%1$s) <-> (%2$s) <-> (%3$s | %4$s)', names, days, y, yy)::tsquery,
      format('%1$s <-> (%2$s) <-> (%3$s)', y, names, days)::tsquery,
      format('(%1$s) <-> (%2$s) <-> %3$s', days, names, y::integer + 543)::tsquery])
  from (select extract(year from day)::text, extract(month from day)::text, extract(day from day)::text) n (y, m, d)
    cross join lateral (select lpad(m, 2, '0'), lpad(d, 2, '0'), right(y, 2)) l (mm, dd, yy)
    cross join lateral (select case when d = dd then d else d || ' | ' || dd end) written (plain)
    cross join lateral (select format('(%1$s | (%1$s) <-> (st | nd | rd | th | er | º | ª | a | o | e))', plain)) dayed (days)
    cross join lateral (select string_agg(search_phrase(string_to_array(name, ' '), false)::text, ' | ')
      from string_to_table((search_months())[m::integer], '|') name) named (names)
    cross join lateral (select format('(%1$s) <-> (%2$s | %3$s) | (%1$s) <-> (de | del | d) <-> %2$s', names, y, yy)) dated (name_year)
    cross join lateral (select search_han(m::integer), search_han(d::integer)) h (han_m, han_d)
$$;
