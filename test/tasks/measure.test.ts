import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TaskContext } from '../../tasks/context.ts'
import { tasks } from '../../tasks/index.ts'
import { scheduleEntries } from '../../tasks/schedules/entries.ts'
import { measureTables } from '../../tasks/system/measure.task.ts'
import { createTestDatabase } from '../database.ts'

const { db, query } = await createTestDatabase()

test('table sizes are stored every hour, replacing those of the same day', async () => {
  const run = () => measureTables.run({ db } as unknown as TaskContext, {})
  const { tables } = await run()
  assert.ok(tables > 40)
  assert.deepEqual(await run(), { tables })
  const [kept] = await query(`select count(*)::int as tables, min(bytes) >= 0 as sized from table_size
    where day = (now() at time zone 'utc')::date`)
  assert.deepEqual(kept, { tables, sized: true })
  const entry = scheduleEntries.find(({ identifier }) => identifier === 'measure')
  assert.deepEqual([entry?.match, entry?.task.name], ['29 * * * *', 'system.measure'])
  assert.ok(tasks.some(({ name }) => name === 'system.measure'))
  assert.deepEqual([measureTables.actor?.({}, null), measureTables.whenBusy], ['measure', 'join'])
})
