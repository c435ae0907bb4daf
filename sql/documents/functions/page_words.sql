-- Returns the words of a page with their positions. Words hyphenated at a line end are indexed whole. Their parts are
-- appended at the end, because the word may be a compound.
create or replace function page_words(content text) returns tsvector language plpgsql immutable parallel safe as $$
begin
  if content !~ '[-\u00ad\u2010]\n' then return to_tsvector('folded', separate_words(content, ' ')); end if;
  return to_tsvector('folded', separate_words(join_hyphenated(content), ' ')) || coalesce(to_tsvector('folded', (
    select string_agg(divided[1] || '-' || divided[2], ' ')
    from regexp_matches(content, '([[:alpha:]]+)[-\u00ad\u2010]\n\s*([[:lower:]][[:alpha:]]*)', 'g') divided)), '');
end $$;
