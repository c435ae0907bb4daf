import { z } from 'zod'
import { Timestamp } from '../../pipeline/request/schemas.ts'

const Count = z.int().min(0)
const Day = z.iso.date()

const Growth = z
  .strictObject({ rows: z.int(), bytes: z.int() })
  .nullable()
  .describe('Negative if it shrank; null if it was not measured on that day')

const Retention = z
  .strictObject({
    setting: z.string().meta({ examples: ['SENDS_KEEP_DAYS'] }),
    days: z.number().nullable().describe('May be a fraction; null: forever'),
    rows: Count.nullable().describe(
      'Number of older rows, which would be deleted now: exact below 1,000, else an estimate of the planner. Null if rows are kept forever, or if only the deletion itself can tell',
    ),
    bytes: Count.nullable().describe(
      'Their estimated share of `bytes`. PostgreSQL reuses this space, and returns it to the system only with a whole partition. Null like `rows`',
    ),
  })
  .nullable()
  .describe('The setting that limits how long rows are kept; null if none does')

const Table = z
  .strictObject({
    name: z.string().meta({ examples: ['comms_send'] }),
    rows: Count.describe('An estimate of the planner'),
    bytes: Count.describe('Including indexes and TOAST'),
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
    oldest_day: Day.nullable().describe('Day of its oldest row; null without rows or a suitable index'),
    retention: Retention,
  })
  .meta({ id: 'Table' })

export const Tables = z
  .strictObject({ at: Timestamp, bytes: Count.describe('Total of all tables'), tables: z.array(Table) })
  .meta({ id: 'Tables' })

const Cost = z.number().min(0).nullable().describe('Null if no request has a known price')

const Model = z.strictObject({
  vendor: z.string(),
  model_id: z.string(),
  requests: Count,
  tokens: Count,
  audio_seconds: z.number().min(0).describe('Seconds of transcribed speech'),
  cost: Cost,
  unpriced_requests: Count.describe('Requests without a known price, not included in the cost'),
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
  day: Day.describe('Day of the requests to send, in UTC'),
  channel: z.enum(['email', 'sms', 'call']),
  sent: Count.describe('Accepted by the provider, without a later event'),
  delivered: Count,
  bounced: Count,
  complained: Count,
  failed: Count,
  unknown: Count.describe('Possibly sent: the outcome is unknown'),
  cancelled: Count,
  waiting: Count.describe('Including scheduled messages'),
})

export const Spending = z
  .strictObject({
    from: Day,
    to: Day,
    models: z.array(Model).describe('Most expensive first, at most 100'),
    sends: z.array(Sends),
  })
  .meta({ id: 'Spending' })
