import { buildArrayText, buildTimeSpanCondition, mapOrders, type PageValues } from '../reads/lists.ts'
import type { ReadStatement } from '../reads/reader.ts'

/** Searches of conversations by their titles and messages. */

// Maximum number of texts with a term that a search reads, in index order. If a term has more, the search also looks into
// the newest conversations. Both bound the cost of a frequent word.
const MAX_MATCHES = 2000
const MAX_NEWEST = 500
// Maximum number of a conversation's texts from which a snippet comes, newest first.
const MAX_SNIPPET_TEXTS = 200

const SEARCH_ORDERS = { updated_at: { 'found.updated_at': 'timestamptz', 'found.id': 'uuid' } } as const

// Conversations of account $2, and with $3 those of the user_id $1 that belong to no account.
const OWNED_CONDITION =
  '(c.owner_id = $2::int or ($3::boolean and c.owner_id is null and c.user_id = $1::text))'

const buildTextCondition = (conversation: string, query: string): string =>
  `exists (select from ai_text s where s.conversation_id = ${conversation} and s.search @@ ${query})`

/** True if the number of a term is in a list. Terms with more texts than were read are looked up in the conversation. */
const buildTermCondition = (list: string, query: string): string =>
  `(coalesce(t.n = any(${list}), false) or (t.is_cut and ${buildTextCondition('c.id', query)}))`

const FOUND_CTE = `
  with space as (
    select ai_search_space($2::int, '') as space where $2::int is not null
    union all
    select ai_search_space(null, $1::text) where $3::boolean
  ), term as materialized (
    select space.space, sought.* from space cross join lateral search_terms(space.space, $6::text) sought
  ), hit as materialized (
    select t.space, t.n, t.negated, possible.*,
      possible.search @@ case when t.negated then t.exact else t.wide end as matches
    from term t cross join lateral (
      select s.conversation_id, s.text_id, s.part, s.search from ai_text s
      where owned_vector(s.space, s.search) @@ t.words limit ${MAX_MATCHES} + 1) possible
  ), size as materialized (
    select t.space, t.n, t.negated, t.exact, t.wide, coalesce(h.hits, 0) as hits, coalesce(h.is_cut, false) as is_cut
    from term t left join (
      select space, n, count(*) filter (where matches) as hits, count(*) > ${MAX_MATCHES} as is_cut from hit group by space, n) h using (space, n)
  ), rarest as materialized (
    select distinct on (space) space, n, is_cut from size where not negated order by space, is_cut, hits, n
  ), candidate as (
    select h.space, h.conversation_id as id from hit h join rarest using (space, n) where h.matches
    union
    select r.space, newest.id from rarest r cross join lateral (
      (select c.id from ai_conversation c where c.owner_id = $2::int and r.space = ai_search_space($2::int, '')
        order by c.updated_at desc, c.id desc limit ${MAX_NEWEST})
      union all
      (select c.id from ai_conversation c
        where c.owner_id is null and c.user_id = $1::text and r.space = ai_search_space(null, $1::text)
        order by c.updated_at desc, c.id desc limit ${MAX_NEWEST})) newest
    where r.is_cut
  ), matched as materialized (
    select conversation_id as id, array_agg(distinct n) filter (where not negated) as terms,
      array_agg(distinct n) filter (where negated) as excluded
    from hit where matches group by conversation_id
  ), best as materialized (
    select distinct on (conversation_id) conversation_id as id, text_id, part, search
    from (select conversation_id, text_id, part, (array_agg(search))[1] as search, count(*) as terms from hit
      where matches and not negated group by conversation_id, text_id, part) texts
    order by conversation_id, terms desc, text_id desc, part
  ), sought as materialized (
    select space, search_any_of(array_agg(wide)) as query from term where not negated group by space
  ), found as materialized (
    select c.id, c.updated_at, k.space
    from candidate k join ai_conversation c on c.id = k.id left join matched m on m.id = k.id
    where ${OWNED_CONDITION} and ${buildTimeSpanCondition('c.updated_at', '$4', '$5')}
      and not exists (select from size t where t.space = k.space and not t.negated and not ${buildTermCondition('m.terms', 't.wide')})
      and not exists (select from size t where t.space = k.space and t.negated and ${buildTermCondition('m.excluded', 't.exact')})
  )`

// The text with most terms, the newest one of several. Conversations that were only looked into show their newest match.
const MATCH_JSON = `(
  select json_build_object('message_id', m.id, 'snippet',
    search_snippet(coalesce(m.content, c.title), text.part, text.search, sought.query))
  from sought cross join lateral (
      select * from (
        (select text_id, part, search, 0 as n from best where best.id = c.id)
        union all
        (select text_id, part, search, 1 from (
            select s.* from ai_text s where s.conversation_id = c.id order by s.text_id desc limit ${MAX_SNIPPET_TEXTS}) newest
          where newest.search @@ sought.query and not exists (select from best where best.id = c.id) limit 1)) texts
      order by n limit 1) text
    left join ai_message m on m.id = text.text_id
  where sought.space = found.space)`

/**
 * Conversations whose title and messages have all terms of a search, see `search_terms`, with the filters of
 * `readConversations`. Each has its best match: a message, or the title if `message_id` is null.
 */
export const searchConversations = mapOrders(
  SEARCH_ORDERS,
  (
    column,
    order,
    direction,
  ): ReadStatement<
    [
      userId: string,
      owner: number | null,
      unowned: boolean,
      from: string | null,
      to: string | null,
      search: string,
      ...page: PageValues,
    ]
  > => ({
    name: `ai_conversations_search_${column}_${direction}`,
    text: `${FOUND_CTE}
    ${buildArrayText({
      table: 'found',
      row: 'found',
      parameters: 6,
      where: 'true',
      order,
      hasPageNumbers: false,
      direction,
      join: 'join ai_conversation c on c.id = found.id',
      item: `ai_conversation_json(c)::jsonb || jsonb_build_object('match', ${MATCH_JSON})`,
    })}`,
  }),
)
