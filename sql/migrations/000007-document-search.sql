-- Search over documents, tags, and the rules of supersession.

create extension if not exists unaccent;
create extension if not exists pg_trgm;

-- Words as they are, without accents: a document may be in any language, so nothing is stemmed.
create text search configuration folded (copy = simple);
alter text search configuration folded
  alter mapping for hword, hword_part, word, hword_asciipart, asciihword, asciiword with unaccent, simple;

-- A vector holds less than 1 MiB. 100,000 characters always fit; of longer texts as much as does.
create function page_vector(given text) returns tsvector language plpgsql immutable parallel safe as $$
begin
  if length(given) <= 100000 then return to_tsvector('folded', given); end if;
  begin
    return to_tsvector('folded', left(given, 600000));
  exception when program_limit_exceeded then
    return to_tsvector('folded', left(given, 100000));
  end;
end $$;

create function document_vector(title text, note text, tags text[]) returns tsvector
language sql immutable parallel safe as $$
  select setweight(to_tsvector('folded', title), 'A') || setweight(to_tsvector('folded', array_to_string(tags, ' ')), 'A')
    || setweight(to_tsvector('folded', coalesce(note, '')), 'B')
$$;

alter table document
  add column search tsvector not null generated always as (document_vector(title, note, tags)) stored,
  add constraint document_tags_check check (cardinality(tags) <= 100),
  add constraint document_supersedes_id_check check (supersedes_id <> id);
create index document_search_idx on document using gin (search) where deleted_at is null;
create index document_tags_idx on document using gin (tags) where deleted_at is null;

alter table document_page
  add column search tsvector not null generated always as (page_vector(text)) stored;
create index document_page_search_idx on document_page using gin (search);

-- Every word that occurs, for finding words by a part of them: an index over whole texts would be several times
-- their size, and cost more than reading them.
create table search_word (
  word text not null,
  constraint search_word_pkey primary key (word)
);
create index search_word_trigram_idx on search_word using gin (word gin_trgm_ops);

-- In the order of the words, so that two transactions never wait for each other.
create function search_words_kept() returns trigger language plpgsql as $$
begin
  insert into search_word (word)
  select distinct lexeme from changed, unnest(changed.search) where length(lexeme) <= 100 order by 1
  on conflict do nothing;
  return null;
end $$;
create trigger search_words_inserted after insert on document_page referencing new table as changed
  for each statement execute function search_words_kept();
create trigger search_words_updated after update on document_page referencing new table as changed
  for each statement execute function search_words_kept();
create trigger search_words_inserted after insert on document referencing new table as changed
  for each statement execute function search_words_kept();
create trigger search_words_updated after update on document referencing new table as changed
  for each statement execute function search_words_kept();

create function quoted_lexeme(word text) returns text language sql immutable parallel safe
  return '''' || replace(replace(word, '\', '\\'), '''', '''''') || '''';

-- The terms of a search, at most 16: words, "phrases", and either after a `-` for what must not occur. `exact` is the
-- term itself; `wide` finds it as the beginning or a part of a word, too. A term without any word is left out.
create function search_terms(given text) returns table (n integer, negated boolean, exact tsquery, wide tsquery)
language plpgsql stable rows 3 as $$
declare
  term text[];
  bare text;
  part text;
begin
  n := 0;
  for term in select regexp_matches(given, '(-?)(?:"([^"]*)"?|(\S+))', 'g') limit 16 loop
    negated := term[1] = '-';
    bare := rtrim(coalesce(term[3], ''), '*');
    exact := case when term[2] is not null then phraseto_tsquery('folded', term[2]) else plainto_tsquery('folded', bare) end;
    if numnode(exact) = 0 then continue; end if;
    n := n + 1;
    wide := exact;
    -- A query's text ends with its last word, which `:*` makes a prefix.
    if term[3] is not null then wide := exact || (exact::text || ':*')::tsquery; end if;
    if term[3] is not null and numnode(exact) = 1 then
      select lexeme into part from unnest(to_tsvector('folded', bare));
      -- Two letters are in everything; two characters of other scripts can be a word.
      if length(part) > 2 or length(part) = 2 and part ~ '[^\x01-\x7f]' then
        wide := wide || coalesce((
          select string_agg(quoted_lexeme(word), ' | ')::tsquery from (
            select word from search_word
            where word like '%' || replace(replace(replace(part, '\', '\\'), '%', '\%'), '_', '\_') || '%'
            order by length(word), word limit 100) found), '');
      end if;
    end if;
    return next;
  end loop;
end $$;

-- What supersedes what: a live document of the same owner, and never in a circle. That it is superseded by one document
-- at most is the unique index document_supersedes_id_key.
create function document_supersedes() returns trigger language plpgsql as $$
begin
  -- One change of an owner's at a time, or two could close a circle together.
  perform pg_advisory_xact_lock(hashtextextended('millrace.supersede:' || coalesce(new.owner_id, 0), 0));
  if not exists (select from document target where target.id = new.supersedes_id and target.deleted_at is null
      and target.owner_id is not distinct from new.owner_id) then
    raise exception 'Superseding a document that is not there'
      using errcode = 'check_violation', constraint = 'document_supersedes_missing';
  end if;
  if exists (
    with recursive older as (
      select new.supersedes_id as id union select document.supersedes_id from document join older on document.id = older.id
    ) select from older where id = new.id) then
    raise exception 'A circle of supersession'
      using errcode = 'check_violation', constraint = 'document_supersedes_circle';
  end if;
  return new;
end $$;
create trigger document_supersedes before insert or update of supersedes_id on document
  for each row when (new.supersedes_id <> new.id) execute function document_supersedes();
