import { z } from 'zod'
import { readUsage, readUserUsage } from '../../../sql/ai/usage.ts'
import { count, Moment, Timestamp } from '../../pipeline/request/schemas.ts'
import { answerJson, route } from '../../pipeline/route.ts'
import { resolveActingUser, UserId } from './callers.ts'

const Count = z.int().min(0)
/** Duration of the transcribed speech. */
const Seconds = z.number().min(0)
/** Cost in US dollars; null if no request has a known price. */
const Cost = z.number().min(0).nullable()

const Usage = z
  .strictObject({
    total_tokens: Count,
    input_tokens: Count,
    output_tokens: Count,
    audio_seconds: Seconds,
    total_cost: Cost,
    unpriced_requests: Count,
    estimated_requests: Count,
    total_requests: Count,
    success_rate: z.number().min(0).max(100),
    models: z.array(
      z.strictObject({
        model_id: z.string(),
        vendor: z.string(),
        requests: Count,
        tokens: Count,
        audio_seconds: Seconds,
        cost: Cost,
        unpriced_requests: Count,
        percentage: z.number(),
      }),
    ),
    recent_activity: z.array(
      z.strictObject({
        timestamp: Timestamp,
        model: z.string(),
        vendor: z.string(),
        input_tokens: Count,
        output_tokens: Count,
        audio_seconds: Seconds,
        cost: Cost,
        estimated: z.boolean(),
        success: z.boolean(),
        action: z.string(),
      }),
    ),
  })
  .meta({ id: 'AiUsage' })

export const usageRoutes = [
  route({
    method: 'get',
    path: '/usage/stats',
    summary: 'Get usage and cost statistics of models',
    description: `Covers start_time (inclusive) to end_time (exclusive); a time without a zone is UTC. Costs are \
exact, in US dollars, at the price of the day; null if no price is known. Sums exclude \`unpriced_requests\`. The provider \
reports the tokens; otherwise the service counts them and marks them \`estimated\`. \`audio_seconds\` are the seconds of \
transcribed speech. An interrupted transcription, which may have been charged, is \`estimated\` and has no cost. \
\`percentage\` is the share of requests. Admins see the usage of all users or of one; accounts see their own.`,
    query: z.object({
      user_id: UserId.optional(),
      start_time: Moment.optional(),
      end_time: Moment.optional(),
      recent_limit: count({ min: 0, max: 200, fallback: 10 }),
    }),
    response: Usage,
    errors: ['ai.not_yours'],
    reads: 'statistics',
    mayLag: true,
    handle: async ({ query, caller, reader }) => {
      const { start_time: from = null, end_time: to = null, recent_limit: recent } = query
      const user = resolveActingUser(caller, query.user_id)
      // Without a user_id, admins and callers without an account get the usage of all users.
      const isForAll = !user.isNamed && (user.seesAll || user.ownerId === null)
      const text = isForAll
        ? await reader.text(readUsage, [from, to, recent])
        : await reader.text(readUserUsage, [from, to, recent, user.userId, user.ownerId, user.seesAll])
      return answerJson(text!)
    },
  }),
]
