-- Returns the dictionary for the stems of a text, by its most frequent words; that of English if they tell nothing.
create or replace function rag_dictionary(sample text) returns text language sql stable parallel safe as $$
  select coalesce((
    select dictionary from (select distinct unnest(search_words(sample)) as word) given
      join (select dictionary, unnest(frequent) as word from search_languages()) known using (word)
    group by dictionary having count(*) >= 3
    order by count(*) desc, dictionary = 'english_stem' desc, dictionary limit 1), 'english_stem')
$$;
