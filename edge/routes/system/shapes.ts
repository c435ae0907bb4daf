import { z } from 'zod'
import { Timestamp } from '../../pipeline/schemas.ts'

const Count = z.int().min(0)
const Day = z.iso.date()

const Growth = z
  .strictObject({ rows: z.int(), bytes: z.int() })
  .nullable()
  .describe('Negative where it shrank; null if it was not measured on that day')

const Retention = z
  .strictObject({
    setting: z.string().meta({ examples: ['SENDS_KEEP_DAYS'] }),
    days: z.number().nullable().describe('May be a fraction; null: for ever'),
    rows: Count.nullable().describe(
      'How many rows are older than that and would go now. Up to 1,000 are counted, more are the planner’s estimate. Null where only the deletion itself finds out',
    ),
    bytes: Count.nullable().describe(
      'Their share of `bytes`, an estimate: PostgreSQL uses that space again, but returns it to the system only where a whole partition goes',
    ),
  })
  .nullable()
  .describe('The setting that says how long rows are kept which nobody deletes; null if none does')

const Table = z
  .strictObject({
    name: z.string().meta({ examples: ['comms_send'] }),
    rows: Count.describe('The planner’s estimate'),
    bytes: Count.describe('With indexes and long values'),
    growth: z.strictObject({
      day: Growth.describe('Since the end of yesterday'),
      week: Growth.describe('Since the end of the day 7 days ago'),
      month: Growth.describe('Since the end of the day 30 days ago'),
    }),
    bytes_by_day: z
      .array(Count.nullable())
      .describe(
        '`bytes` at the end of each of the last 30 days, and now; null for days without a measurement',
      ),
    oldest_day: Day.nullable().describe('That of its oldest row; null without rows, or if no index has it'),
    retention: Retention,
  })
  .meta({ id: 'Table' })

export const Tables = z
  .strictObject({ at: Timestamp, bytes: Count.describe('Of all of them'), tables: z.array(Table) })
  .meta({ id: 'Tables' })

const Cost = z.number().min(0).nullable().describe('Null where nothing in it has a known price')

const Model = z.strictObject({
  vendor: z.string(),
  model_id: z.string(),
  requests: Count,
  tokens: Count,
  audio_seconds: z.number().min(0).describe('Of speech that was transcribed'),
  cost: Cost,
  unpriced_requests: Count.describe('Requests without a known price, which are not in the cost'),
  days: z.array(
    z.strictObject({
      day: Day,
      requests: Count,
      tokens: Count,
      audio_seconds: z.number().min(0),
      cost: Cost,
    }),
  ),
})

const Sends = z.strictObject({
  day: Day.describe('On which they were asked for'),
  channel: z.enum(['email', 'sms', 'call']),
  sent: Count.describe('Of which the provider has told nothing since'),
  delivered: Count,
  bounced: Count,
  complained: Count,
  failed: Count,
  unknown: Count.describe('They may have been sent'),
  cancelled: Count,
  waiting: Count.describe('Those that are scheduled, too'),
})

export const Spending = z
  .strictObject({
    from: Day,
    to: Day,
    models: z.array(Model).describe('The costliest first, at most 100'),
    sends: z.array(Sends),
  })
  .meta({ id: 'Spending' })
