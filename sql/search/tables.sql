-- Words of texts and queries, and the known words of each owner.

-- Converts a text to lower case. The default locale may be C, which knows only the letters of ASCII.
do $$ begin
  execute format('create function search_lower(content text) returns text language sql immutable parallel safe return lower(content collate %I)',
    coalesce((select min(collname) from pg_collation where collname in ('pg_c_utf8', 'und-x-icu')), 'default'));
end $$;

create function search_unaccent(content text) returns text language sql immutable parallel safe
  return unaccent('unaccent', content);

-- Returns the punctuation and symbols beyond ASCII, as ranges of a regular expression.
create function search_separators() returns text language sql immutable parallel safe
  return '\u0080-\u00a9\u00ab\u00ac\u00ae-\u00b1\u00b4\u00b6-\u00b8\u00bb\u00bf\u00d7\u00f7\u055a-\u055f\u0589\u05be\u05c0'
    '\u05c3\u05f3\u05f4\u060c\u061b\u061f\u066a-\u066d\u06d4\u0964\u0965\u0e3f\u0e4f\u0e5a\u0e5b\u0f04-\u0f14\u104a-\u104f\u1361-\u1368'
    '\u17d4-\u17da\u2000-\u2029\u202f-\u205f\u20a0-\u20cf\u2100-\u214f\u2190-\u2bff\u2e00-\u2e7f\u3000-\u3004\u3008-\u3020\u3030'
    '\u303d-\u303f\u30fb\ue000-\uf8ff\ufe00-\ufe1f\uff00-\uffff\U0001f000-\U0001faff';

-- Returns the characters of scripts without spaces, as ranges of a regular expression.
create function search_pairs() returns text language sql immutable parallel safe
  return '\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff';

-- Replaces spellings that readers hold to be the same, in scripts beyond ASCII:
--
-- - Compatibility forms (NFKC), such as full-width letters, ligatures and superscripts.
-- - Accents and other marks of Latin, Greek, Cyrillic, Hebrew and Arabic. Marks of Brahmic scripts stay: they are vowels.
-- - Variants of Arabic and Persian letters, and the tatweel.
-- - Digits of all scripts.
--
-- Removes characters without width, and replaces punctuation and symbols with spaces.
create function search_fold(content text) returns text language plpgsql immutable parallel safe as $$
declare
  folded text := regexp_replace(normalize(content, NFKC), '[\u00ad\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640'
    '\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed\u200c-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]+', '', 'g');
begin
  folded := regexp_replace(folded, '[' || public.search_separators() || ']+', ' ', 'g');
  folded := public.search_lower(public.search_unaccent(public.search_lower(folded)));
  if folded ~ '[\u03c2\u0621-\u06d3]' then
    folded := translate(folded, 'ςأإآٱىیئؤةۀک', 'σاااايييوههك');
  end if;
  if folded ~ '[\u0660-\u0669\u06f0-\u06f9\u07c0-\u07c9\u0966-\u0dff\u0e50-\u0e59\u0ed0-\u0ed9\u0f20-\u0f29\u1040-\u1049\u1090-\u1099\u17e0-\u17e9\u1810-\u1819]' then
    folded := translate(folded, '٠١٢٣٤٥٦٧٨٩۰۱۲۳۴۵۶۷۸۹߀߁߂߃߄߅߆߇߈߉०१२३४५६७८९০১২৩৪৫৬৭৮৯੦੧੨੩੪੫੬੭੮੯૦૧૨૩૪૫૬૭૮૯୦୧୨୩୪୫୬୭୮୯௦௧௨௩௪௫௬௭௮௯౦౧౨౩౪౫౬౭౮౯'
      '೦೧೨೩೪೫೬೭೮೯൦൧൨൩൪൫൬൭൮൯෦෧෨෩෪෫෬෭෮෯๐๑๒๓๔๕๖๗๘๙໐໑໒໓໔໕໖໗໘໙༠༡༢༣༤༥༦༧༨༩၀၁၂၃၄၅၆၇၈၉႐႑႒႓႔႕႖႗႘႙០១២៣៤៥៦៧៨៩᠐᠑᠒᠓᠔᠕᠖᠗᠘᠙',
      repeat('0123456789', 20));
  end if;
  return folded;
end $$;

-- Returns the words of a text in lower case, each followed by a space. Both texts and queries pass through it.
--
-- - Letters and digits are separate words, so INV-40718 and INV40718 are the same, and their digits are found.
-- - Scripts without spaces (Chinese, Japanese, Korean, Thai, Lao, Khmer, Burmese) give each pair of neighbours, and the last
--   character of a run. A query of any length, even of one character, is thus a phrase whose last word is a prefix.
-- - C++ and C# are words.
create function search_text(content text) returns text language plpgsql immutable parallel safe as $$
declare
  words text := case when content ~ '[^\x01-\x7f]' then public.search_fold(content) else lower(content) end;
begin
  if strpos(words, '++') > 0 then words := regexp_replace(words, '([a-z])\+\+', '\1plusplus', 'g'); end if;
  if strpos(words, '#') > 0 then words := regexp_replace(words, '([a-z])#', '\1sharp', 'g'); end if;
  words := regexp_replace(words, '[\x01-\x2f\x3a-\x60\x7b-\x7f]+', ' ', 'g');
  if words ~ ('[' || public.search_pairs() || ']') then
    words := regexp_replace(words, format('(?<=[%1$s])([%1$s])', public.search_pairs()), '\1 \1', 'g');
    -- Separates them from letters of other scripts.
    words := regexp_replace(words, format('([^ %1$s])(?=[%1$s])', public.search_pairs()), '\1 ', 'g');
    words := regexp_replace(words, format('([%1$s])(?=[^ %1$s])', public.search_pairs()), '\1 ', 'g');
  end if;
  return ltrim(regexp_replace(words, '([^ 0-9])(?=[0-9])|([0-9])(?=[^ 0-9])', '\1\2 ', 'g')) || ' ';
end $$;

-- True if a word is of a script without spaces, see `search_text`.
create function search_is_pair(word text) returns boolean language sql immutable parallel safe
  return word ~ ('^[' || search_pairs() || ']');

-- Returns the words of a text as an array. A double space leaves an empty word, which separates phrases.
create function search_words(content text) returns text[] language sql immutable parallel safe
  return string_to_array(rtrim(search_text(content)), ' ');

-- True if a line of a text ends with a hyphen.
create function search_has_hyphen(content text) returns boolean language sql immutable parallel safe
  return strpos(content, E'-\n') > 0 or strpos(content, E'\u00ad\n') > 0 or strpos(content, E'\u2010\n') > 0;

-- Returns further spellings of a text's words, which are indexed behind the text. A word that was hyphenated at a line end
-- may be a compound, so its parts are words as well. Digits in groups, such as those of an IBAN, an ISBN or a phone number,
-- are also one number, together with letters before them. The parts of an identifier such as readFileSync are words as well.
create function search_spellings(content text) returns text language sql immutable parallel safe
  return case when search_has_hyphen(content) then coalesce((
    select string_agg('  ' || search_text(divided[1] || ' ' || divided[2]), '')
    from regexp_matches(content, '([^\x01-@\[-`\x7b-\x7f]+)[-\u00ad\u2010]\n\s*([^\x01-`\x7b-\x7f]+)', 'g') divided), '') else '' end
  || case when content ~ '[0-9][-. /()]{1,2}[0-9]+[-. /()]{1,2}[0-9]' then coalesce((
    select string_agg('  ' || search_text(regexp_replace(grouped[1], '[^A-Za-z0-9]', '', 'g')), '')
    from regexp_matches(content, '((?:[A-Z]{2})?[0-9]+(?:[-. /()]{1,2}[0-9]+){2,9})(?![0-9])', 'g') grouped), '') else '' end
  || case when content ~ '[a-z][A-Z]|[A-Z]{2}[a-z]' then coalesce((
    select string_agg('  ' || search_text(regexp_replace(regexp_replace(identifier[1], '([a-z0-9])([A-Z])', '\1 \2', 'g'), '([A-Z])([A-Z][a-z])', '\1 \2', 'g')), '')
    from regexp_matches(content, '[A-Za-z0-9]*(?:[a-z][A-Z]|[A-Z]{2}[a-z])[A-Za-z0-9]*', 'g') identifier), '') else '' end;

-- Joins words that were hyphenated at line ends. A second part that starts with a capital is a word of its own.
create function search_joined(content text) returns text language sql immutable parallel safe
  return case when search_has_hyphen(content)
    then regexp_replace(content, '([^\x01-@\[-`\x7b-\x7f])[-\u00ad\u2010]\n\s*([^\x01-`\x7b-\x7f])', '\1\2', 'g')
    else content end;

-- Returns the words of a text and their further spellings, in order. A text of a document or a collection is found by these.
create function search_index_words(content text) returns text[] language sql immutable parallel safe
  return string_to_array(search_text(search_joined(content)) || search_spellings(content), ' ');

-- Returns the search vector of a text of at most 16,000 characters: its words with their positions. A vector holds 16,383
-- positions, and less than 1 MiB. Words of more than 100 characters are cut.
create function search_vector(content text) returns tsvector language sql immutable parallel safe
  return coalesce((
    select string_agg(left(word, 100) || ':' || n, ' ')
    from unnest(search_index_words(content)) with ordinality given (word, n)
    where word <> '' and n <= 16383), '')::tsvector;

-- Returns a prefix for the words of an owner in indexes. A null owner stands for texts without one.
create function owner_prefix(owner integer) returns text language sql immutable parallel safe
  return to_hex(coalesce(owner, 0)) || ':';

-- Returns the index entries of a vector: its words, each prefixed with the owner. A search, even for a prefix, thus
-- reads only the entries of its own owner.
create function owned_vector(owner integer, vector tsvector) returns tsvector language sql immutable parallel safe
  return array_to_tsvector(array(select owner_prefix(owner) || word from unnest(tsvector_to_array(vector)) word));

-- The words of each owner's texts, for searches by a part of a word, by a stem, or with a misspelling. An index on whole
-- texts would be several times their size, and searching it would cost more than reading the texts.
create table search_word (
  -- 0 for documents without an owner, -1 for posts.
  owner_id integer not null,
  word text collate "C" not null,
  -- When the word was last seen in a text, accurate to three days.
  seen_at timestamptz not null default now(),
  constraint search_word_pkey primary key (owner_id, word)
);
create index search_word_seen_at_idx on search_word (seen_at);
create index search_word_trigram_idx on search_word using gin (owner_id, word gin_trgm_ops);

-- The current pass over all texts, which marks their words so that unused words can be deleted. At most one pass runs
-- at a time.
create table search_pass (
  started_at timestamptz not null default now(),
  -- The last text that the pass has marked: a page, or page 0 for the metadata of a document.
  document_id bigint not null default 0,
  page_number integer not null default 0,
  -- The last post that the pass has marked. Posts follow the documents.
  post_id bigint not null default 0
);
create unique index search_pass_single_key on search_pass ((true));
-- It has no primary key, without which a publication would refuse its updates.
alter table search_pass replica identity full;
