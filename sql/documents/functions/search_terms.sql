-- Parses an owner's search into at most 16 terms: words, "phrases", and either with a leading `-` for exclusion. Skips
-- terms without any word. Each term has these queries:
--
-- - `exact` matches the term itself, or a number or date in any notation.
-- - `wide` also matches the term as a prefix. If that finds less than a page, it matches the term as any part of a
--   word. If nothing matches, it allows one misspelling.
-- - `words` matches at least all that `wide` matches, using the index alone. It queries an `owned_vector`, so it
--   matches the words of a phrase in any order.
create or replace function search_terms(p_owner integer, query text)
returns table (n integer, negated boolean, is_phrase boolean, exact tsquery, wide tsquery, words tsquery) language plpgsql stable rows 3 as $$
declare
  term text[];
  bare text;
  spaced text;
  lexeme_text text;
  notations text[];
  hits bigint;
begin
  n := 0;
  for term in select regexp_matches(query, '(-?)(?:"([^"]*)"?|(\S+))', 'g') limit 16 loop
    negated := term[1] = '-';
    is_phrase := term[2] is not null;
    bare := rtrim(coalesce(term[3], ''), '*');
    spaced := separate_words(coalesce(term[2], bare), ' ');
    exact := case when is_phrase then phraseto_tsquery('folded', spaced) else plainto_tsquery('folded', spaced) end;
    if numnode(exact) = 0 then continue; end if;
    n := n + 1;
    wide := exact;
    -- Adds a prefix match. The text of a tsquery ends with its last word, which `:*` turns into a prefix.
    if not is_phrase then wide := exact || (exact::text || ':*')::tsquery; end if;
    words := owned_query(p_owner, case when is_phrase then plainto_tsquery('folded', spaced) else wide end);
    notations := search_notations(coalesce(term[2], bare));
    if notations is not null then
      -- Matches each notation as the phrase of its tokens.
      is_phrase := true;
      select string_agg('(' || phraseto_tsquery('folded', notation)::text || ')', ' | ')::tsquery,
        string_agg('(' || plainto_tsquery('folded', notation)::text || ')', ' | ')::tsquery
      into exact, words from unnest(notations) notation;
      -- Also matches the prefix of a longer number, unless the number has several tokens.
      if numnode(wide) <= 3 then
        words := words || wide;
        wide := exact || wide;
      else
        wide := exact;
      end if;
      words := owned_query(p_owner, words);
    elsif not is_phrase and numnode(exact) = 1 and not negated then
      select lexeme into lexeme_text from unnest(to_tsvector('folded', spaced));
      -- Two ASCII letters occur everywhere, but two characters of other scripts can be a word.
      if length(lexeme_text) > 2 or length(lexeme_text) = 2 and lexeme_text ~ '[^\x01-\x7f]' then
        hits := search_count_hits(words);
        if hits < 50 then
          wide := wide || coalesce((
            select string_agg(quote_lexeme(word), ' | ')::tsquery from (
              select word from (
                select word from search_word
                where word like '%' || replace(replace(replace(lexeme_text, '\', '\\'), '%', '\%'), '_', '\_') || '%' limit 1000) holding
              order by length(word), word limit 100) found), '');
          words := owned_query(p_owner, wide);
        end if;
        -- Excludes numbers, because another digit makes another number.
        if hits = 0 and length(lexeme_text) >= 6 and lexeme_text ~ '^[[:alpha:]]+$' and search_count_hits(words) = 0 then
          wide := wide || coalesce((
            select string_agg(quote_lexeme(word), ' | ')::tsquery from search_similar_words(lexeme_text) word), '');
          words := owned_query(p_owner, wide);
        end if;
      end if;
    end if;
    return next;
  end loop;
end $$;
