-- True if a word is so frequent in a language that it does not tell texts apart. A search ranks such words only if nothing else
-- is asked. In English, these are articles, pronouns, prepositions, conjunctions, auxiliaries, remains of contractions and
-- question words; in other languages, the stop words of PostgreSQL's dictionary.
create or replace function search_is_common(word text, dictionary regdictionary) returns boolean language sql stable parallel safe as $$
  select case when length(word) = 1 and word ~ '[a-z]' then true
    when dictionary = 'english_stem'::regdictionary then search_english_words() ? word
    else ts_lexize(dictionary, word) = '{}' end
$$;
