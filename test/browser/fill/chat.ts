import type { Fill } from './fill.ts'

const LONG_WORD = 'Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft'
const ANSWER = `## Rivers and mills

Three mills were **rebuilt**, see [the survey](https://example.com/survey) and [1].

- The wheel kept its place
- ${LONG_WORD}

| Mill | Rebuilt | Power |
| --- | --- | ---: |
| Northern | 1871 | 12 kW |

\`\`\`js
const power = (head, flow) => 9.81 * head * flow * 0.7 // a line that is longer than the panel of the message in every case
\`\`\``

const BIG = '00000000-0000-7000-8000-0000000000c1'
const SOURCES = JSON.stringify([
  {
    rank: 1,
    score: 1,
    content: 'The wheel.',
    metadata: { document_id: 1, file_name: `${LONG_WORD}.pdf`, page: 3 },
  },
  {
    rank: 2,
    score: 0.5,
    content: '',
    metadata: { source: 'facts/tides.md', page: null, start_line: 1, end_line: 9 },
  },
])
const CALLS = JSON.stringify([{ id: 'c1', name: 'weather', arguments: '{"city":"Oslo"}' }])

/** 10,000 conversations, of which one has 2,000 messages and two versions of every fiftieth answer. */
export const fill: Fill = async ({ query, accountId }) => {
  await query(
    `insert into ai_conversation (id, user_id, owner_id, title, provider, model, created_at, updated_at)
     select case n when 1 then $2::uuid else gen_random_uuid() end, $1::text, $1::int,
       case n % 5 when 0 then $3 when 1 then repeat('A long title ', 15) else 'Conversation ' || n end, 'openai', 'gpt-4o-mini',
       now() - n * interval '1 minute', now() - n * interval '1 minute'
     from generate_series(1, 10000) n`,
    [accountId, BIG, LONG_WORD],
  )
  await query(
    `insert into ai_message (id, conversation_id, parent_id, role, status, content, document_ids, tool_calls, rag_sources, reasoning,
       finish_reason, provider, model, settled_at)
     select ('00000000-0000-7000-9000-' || lpad(n::text, 12, '0'))::uuid, $1::uuid, case n when 1 then null else ('00000000-0000-7000-9000-' || lpad((n - 1)::text, 12, '0'))::uuid end,
       case n % 2 when 1 then 'user' else 'assistant' end,
       case when n % 2 = 1 then 'complete' when n % 20 = 0 then 'failed' when n % 22 = 0 then 'stopped' else 'complete' end,
       case when n % 2 = 1 then 'Question ' || n || ' about ' || $2 else $3 end,
       case n % 14 when 1 then '{1,2}'::bigint[] else '{}' end, case n % 16 when 0 then $5::jsonb end, case n % 4 when 0 then $4::jsonb end,
       case n % 6 when 0 then 'First the wheel, then the race.' end, case when n % 2 = 0 and n % 20 <> 0 then 'length' end,
       'openai', case n % 2 when 0 then 'gpt-4o-mini' end, now()
     from generate_series(1, 2000) n order by n`,
    [BIG, LONG_WORD, ANSWER, SOURCES, CALLS],
  )
  await query(
    `insert into ai_message (id, conversation_id, parent_id, is_active, role, status, content, finish_reason, provider, model, settled_at)
     select gen_random_uuid(), conversation_id, parent_id, false, 'assistant', 'complete', 'Another answer', 'stop', 'openai', 'gpt-4o-mini', now()
     from ai_message where conversation_id = $1::uuid and role = 'assistant' and ordinal % 50 = 0`,
    [BIG],
  )
  await query(
    `insert into ai_usage (user_id, owner_id, conversation_id, message_id, action, vendor, model, input_tokens, output_tokens, cost, estimated,
       success)
     select $2::text, $2::int, conversation_id, id, 'chat', 'openai', 'gpt-4o-mini', 1200, 340, case ordinal % 9 when 0 then null else 0.0004 end,
       false, true
     from ai_message where conversation_id = $1::uuid and role = 'assistant'`,
    [BIG, accountId],
  )
  return { '/chat/:conversation_id': `/chat/${BIG}` }
}
