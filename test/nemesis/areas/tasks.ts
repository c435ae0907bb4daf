import { setTimeout as delay } from 'node:timers/promises'
import { getAwakeMs } from '../../awake.ts'
import type { MakeArea } from '../area.ts'
import { follow } from '../follow.ts'

const RESULT_TIMEOUT_MS = 240_000

/** Adds single tasks and batches, and polls or follows their results. */
export const tasks: MakeArea = (admin) => {
  const ids: string[] = []

  return {
    act: async () => {
      const { chance } = admin
      const count = chance.isHit(0.2) ? chance.between(2, 100) : 1
      const args = { operations: 1, duration_ms: chance.between(1, 400) }
      const json = { task_name: 'io_simulation_task', queue_type: 'load_test', args, count }
      const delayed = chance.isHit(0.2) ? { delay_seconds: chance.between(1, 5) } : {}
      const { json: made } = await admin.post('/api/v1/tasks/enqueue', { json: { ...json, ...delayed } })
      const own: string[] = made.task_ids ?? [made.task_id]
      if (new Set(own).size !== count)
        admin.recordViolation(`${own.length} tasks were created, expected ${count}`)
      ids.push(...own)
      const one = chance.pick(own)
      if (chance.isHit(0.5)) return void (await follow(admin, one))
      const end = getAwakeMs() + RESULT_TIMEOUT_MS
      for (;;) {
        const { json: result } = await admin.ask(`/api/v1/tasks/result/${one}`)
        if (result.status === 'completed') return
        if (getAwakeMs() > end)
          throw admin.recordViolation(`task ${one} is ${result.status} after ${RESULT_TIMEOUT_MS / 1000} s`)
        await delay(200)
      }
    },
    judge: async () => {
      const rows = await admin.world.query(
        `select id from job where name = 'load_test.io_simulation_task' or name like '%io_simulation%'`,
      )
      const there = new Set(rows.map(({ id }) => String(id)))
      const found = ids.filter((id) => !there.has(id)).map((id) => `task ${id} is missing`)
      if (there.size !== ids.length)
        found.push(`${there.size} tasks exist, but ${ids.length} were acknowledged`)
      return found
    },
  }
}
