import { z } from 'zod'
import { PERFORMANCES, readAccountSentiment, readSentiment, SENTIMENTS } from '../../../sql/ai/sentiment.ts'
import { Timestamp } from '../../pipeline/request/schemas.ts'
import { answerJson, route } from '../../pipeline/route.ts'

const Count = z.int().min(0)
const Score = z.number().min(-1).max(1)

const Sentiment = z
  .strictObject({
    enabled: z.boolean(),
    total: Count,
    distribution: z.strictObject({ positive: Count, neutral: Count, negative: Count, frustrated: Count }),
    performance: z.strictObject({ good: Count, acceptable: Count, poor: Count }),
    average_score: Score,
    recent_negatives: z.array(
      z.strictObject({
        conversation_id: z.uuid(),
        title: z.string(),
        sentiment: z.enum(SENTIMENTS),
        performance: z.enum(PERFORMANCES),
        score: Score,
        scored_at: Timestamp,
      }),
    ),
  })
  .meta({ id: 'AiSentiment' })

export const sentimentRoutes = [
  route({
    method: 'get',
    path: '/sentiment/stats',
    summary: 'Get sentiment statistics of conversations',
    description: `With \`AI_SENTIMENT_ENABLED\`, a model scores conversations every 15 minutes, after five minutes \
without a message. Scores range from -1 to 1. \`recent_negatives\` has the ten latest negative or frustrated \
conversations. Accounts see their own conversations; admins see all. Callers without a credential get the counts of all, and \
in \`recent_negatives\` only conversations without an account.`,
    response: Sentiment,
    reads: 'statistics',
    mayLag: true,
    handle: async ({ caller, edge, reader }) => {
      const { sentimentEnabled } = edge.settings.ai
      const seesAll = caller.role === 'admin'
      const text =
        caller.ownerId !== null && !seesAll
          ? await reader.text(readAccountSentiment, [sentimentEnabled, caller.ownerId])
          : await reader.text(readSentiment, [sentimentEnabled, seesAll])
      return answerJson(text!)
    },
  }),
]
