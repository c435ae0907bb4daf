import { z } from 'zod'
import { RETAINED, readTables } from '../../sql/sizes.ts'
import { readSpending } from '../../sql/spending.ts'
import type { Settings } from '../../tasks/settings.ts'
import { RETENTION_SETTINGS } from '../../tasks/system/settings.ts'
import { area, json, route } from '../pipeline/route.ts'
import { count } from '../pipeline/schemas.ts'
import { Spending, Tables } from './system/shapes.ts'

const SECONDS_A_DAY = 86_400
// Housekeeping deletes these every minute.
const JOB_TABLES = ['job', 'job_event_row']

const tables = route({
  method: 'get',
  path: '/tables',
  summary: 'List the tables with their size, their growth, and what retention would free, the largest first',
  description: `A table with partitions is one, and so are the tables of the queue (\`graphile_worker\`). Nothing is \
counted to the end: numbers of rows are estimates. Growth is since the last measurement, taken every hour, of an earlier \
UTC day.`,
  response: Tables,
  reads: 'statistics',
  handle: async ({ edge, reader }) => json((await reader.text(readTables, retentionOf(edge.settings)))!),
})

const spending = route({
  method: 'get',
  path: '/spending',
  summary: 'Get the cost of models and the messages sent on each of the last days',
  description: `Days are in UTC and end with today; those without any are left out. Costs are exact, in US dollars, at \
the price of the day. Usage and messages are here for as long as they are kept: \`AI_USAGE_KEEP_DAYS\`, \
\`SENDS_KEEP_DAYS\`.`,
  query: z.object({ days: count({ min: 1, max: 366, fallback: 30 }) }),
  response: Spending,
  reads: 'statistics',
  handle: async ({ query, reader }) => json((await reader.text(readSpending, [query.days]))!),
})

/** What the service takes, in space and in money, for those who run it. */
export const system = area(
  'system',
  '/api/v1/system',
  { auth: 'admin', about: 'Table sizes, and the cost of models and messages.' },
  [tables, spending],
)

/** The tables that have a retention, their settings and days, as `readTables` takes them. */
function retentionOf({ keepDays, keepResultSeconds }: Settings): [string[], string[], number[]] {
  const jobs = JOB_TABLES.map((table) => ({
    table,
    setting: 'WORKER_KEEP_RESULT_SECONDS',
    days: keepResultSeconds / SECONDS_A_DAY,
  }))
  const retained = RETAINED.map(({ table, keep }) => ({
    table,
    setting: RETENTION_SETTINGS[keep],
    days: keepDays[keep],
  }))
  const all = [...retained, ...jobs]
  return [all.map(({ table }) => table), all.map(({ setting }) => setting), all.map(({ days }) => days)]
}
