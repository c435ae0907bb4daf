import { z } from 'zod'
import { noRows, type Query, sql } from '../db.ts'
import type { ReadStatement, ReadValue } from '../reads/reader.ts'

/** Sentiment scores of conversations. */

export const SENTIMENTS = ['positive', 'neutral', 'negative', 'frustrated'] as const
export const PERFORMANCES = ['good', 'acceptable', 'poor'] as const

const UnscoredConversation = z.object({
  id: z.string(),
  since: z.string(),
  messages: z.array(z.object({ role: z.enum(['user', 'assistant']), content: z.string() })),
})
export type UnscoredConversation = z.output<typeof UnscoredConversation>

/**
 * Finds conversations with an unscored answer and no activity for `quietSeconds`, longest waiting first, with their
 * last `messages`. Excludes postponed conversations.
 */
export const findUnscoredConversations = (
  quietSeconds: number,
  messages: number,
  limit: number,
): Query<UnscoredConversation> =>
  sql.type(UnscoredConversation)`
    select c.id, c.unscored_since::text as since, (
      select coalesce(json_agg(json_build_object('role', m.role, 'content', left(m.content, 2000)) order by m.ordinal), '[]') from (
        select * from ai_message m where m.conversation_id = c.id and m.is_visible
          and m.status = 'complete' and m.role in ('user', 'assistant')
        order by m.ordinal desc limit ${messages}) m) as messages
    from ai_conversation c
    where c.unscored_since <= now() and c.updated_at < now() - make_interval(secs => ${quietSeconds}::float8)
    order by c.unscored_since limit ${limit}`

/** Judgement of a conversation. `score` ranges from -1 to 1. */
export interface Judgement {
  readonly sentiment: (typeof SENTIMENTS)[number]
  readonly performance: (typeof PERFORMANCES)[number]
  readonly score: number
}

/** Stores the judgement of a conversation, unless it has continued after `c.since`. */
export const storeJudgement = (c: { id: string; since: string }, j: Judgement): Query<unknown> =>
  sql.type(noRows)`
    with scored as (
      update ai_conversation set unscored_since = null
      where id = ${c.id}::uuid and unscored_since = ${c.since}::timestamptz
        and not exists (select from ai_message where conversation_id = ${c.id}::uuid and status = 'pending')
      returning id, owner_id
    )
    insert into ai_sentiment (conversation_id, owner_id, sentiment, performance, score)
    select id, owner_id, ${j.sentiment}, ${j.performance}, ${j.score} from scored
    on conflict on constraint ai_sentiment_pkey do update set sentiment = excluded.sentiment,
      performance = excluded.performance, score = excluded.score, scored_at = now()`

/** Postpones a failed judgement by one day, because each request to the model costs money. */
export const postponeJudgement = (c: { id: string; since: string }): Query<unknown> =>
  sql.type(noRows)`
    update ai_conversation set unscored_since = now() + interval '1 day' where id = ${c.id}::uuid and unscored_since = ${c.since}::timestamptz`

const buildCountsJson = (column: string, values: readonly string[]): string =>
  `json_build_object(${values.map((value) => `'${value}', coalesce(sum(scores) filter (where ${column} = '${value}'), 0)`).join(', ')})`

// Builds a statement that reads statistics. `enabled` is true if scoring is enabled. `owner` selects the sums; 0 means
// all accounts.
const buildSentimentStatement = <M extends readonly ReadValue[]>(
  name: string,
  owner: string,
  whose: string,
): ReadStatement<[enabled: boolean, ...more: M]> => ({
  name,
  text: `select json_build_object('enabled', $1::boolean, 'total', coalesce(sum(scores), 0),
      'distribution', ${buildCountsJson('sentiment', SENTIMENTS)},
      'performance', ${buildCountsJson('performance', PERFORMANCES)},
      'average_score', coalesce(round(sum(score) / nullif(sum(scores), 0), 4), 0),
      'recent_negatives', (select coalesce(json_agg(json_build_object('conversation_id', n.conversation_id, 'title', c.title,
          'sentiment', n.sentiment, 'performance', n.performance, 'score', n.score, 'scored_at', iso(n.scored_at))
          order by n.scored_at desc), '[]')
        from (select * from ai_sentiment where sentiment in ('negative', 'frustrated') and ${whose}
          order by scored_at desc limit 10) n
        join ai_conversation c on c.id = n.conversation_id))::text
    from ai_sentiment_sum where owner_id = ${owner}`,
})

/** Statistics of all conversations. Unless the viewer sees all, the latest ones are those of callers without an account. */
export const readSentiment = buildSentimentStatement<[seesAll: boolean]>(
  'ai_sentiment',
  '0',
  '($2::boolean or owner_id is null)',
)

/** Statistics of the conversations of an account. */
export const readAccountSentiment = buildSentimentStatement<[owner: number]>(
  'ai_sentiment_of',
  '$2::int',
  'owner_id = $2::int',
)
