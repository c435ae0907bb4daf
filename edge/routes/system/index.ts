import { z } from 'zod'
import { RETAINED_TABLES, readTables } from '../../../sql/system/sizes.ts'
import { readSpending } from '../../../sql/system/spending.ts'
import type { Settings } from '../../../tasks/platform/settings/settings.ts'
import { RETENTION_SETTINGS } from '../../../tasks/system/settings.ts'
import { count } from '../../pipeline/request/schemas.ts'
import { answerJson, area, route } from '../../pipeline/route.ts'
import { Spending, Tables } from './shapes.ts'

const SECONDS_PER_DAY = 86_400
// Tables whose expired rows the pruner deletes every minute.
const JOB_TABLES = ['job', 'job_event_row']

const tablesRoute = route({
  method: 'get',
  path: '/tables',
  summary: 'List tables with size, growth and retention',
  description: `Sorted by size, largest first. Partitions count as one table, and so do all tables of \
\`graphile_worker\`. Row counts are estimates. Sizes are measured every hour; growth compares with the last measurement \
of an earlier UTC day.`,
  response: Tables,
  reads: 'statistics',
  mayLag: true,
  handle: async ({ edge, reader }) =>
    answerJson((await reader.text(readTables, buildRetentionParameters(edge.settings)))!),
})

const spendingRoute = route({
  method: 'get',
  path: '/spending',
  summary: 'Get model costs and message counts by day',
  description: `Covers the last \`days\` UTC days, including today; days without any are left out. Costs are exact, in \
US dollars, at the price of the day. Usage is kept for \`AI_USAGE_KEEP_DAYS\`, messages for \`SENDS_KEEP_DAYS\`.`,
  query: z.object({ days: count({ min: 1, max: 366, fallback: 30 }) }),
  response: Spending,
  reads: 'statistics',
  mayLag: true,
  handle: async ({ query, reader }) => answerJson((await reader.text(readSpending, [query.days]))!),
})

/** Routes for the storage and spending of the service, which only admins may use. */
export const system = area('system', '/api/v1/system', { auth: 'admin' }, [tablesRoute, spendingRoute])

/** Returns the parameters of `readTables`: the tables with a retention, and the setting and number of days of each. */
function buildRetentionParameters({
  retentionDays,
  jobRetention: [keepOthers, keepFailed],
}: Settings): [string[], string[], number[]] {
  const jobs = JOB_TABLES.map((table) => ({
    table,
    setting: keepFailed > keepOthers ? 'WORKER_KEEP_FAILED_SECONDS' : 'WORKER_KEEP_RESULT_SECONDS',
    days: Math.max(keepOthers, keepFailed) / SECONDS_PER_DAY,
  }))
  const retained = RETAINED_TABLES.map(({ table, keep }) => ({
    table,
    setting: RETENTION_SETTINGS[keep],
    days: retentionDays[keep],
  }))
  const all = [...retained, ...jobs]
  return [all.map(({ table }) => table), all.map(({ setting }) => setting), all.map(({ days }) => days)]
}
