import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { createTestDatabase } from '../database.ts'
import { IS_LONG, SEED } from '../runs.ts'
import { collectLines, launchProcess, SHORT_LIVED_FLAGS } from '../service.ts'
import { until } from '../until.ts'
import { type Cut, openCountingLink } from './statements.ts'

/** Processes lose a connection during their start. */

const { url, query } = await createTestDatabase()
const link = await openCountingLink(url)

async function countStartStatements(kind: 'edge' | 'worker', cut: Cut | null): Promise<number> {
  link.arm(cut)
  const child = await launchProcess(kind, link.url)
  const { statements } = link
  await child.kill()
  return statements
}

for (const kind of ['edge', 'worker'] as const)
  test(`${kind}: starts even if any one of its statements loses its connection`, async () => {
    const count = await countStartStatements(kind, null)
    assert.ok(count >= 3, `${count} statements`)
    const all = Array.from({ length: count }, (_, i) => i + 1).flatMap((at): Cut[] => [
      { statement: at, when: 'before' },
      { statement: at, when: 'after' },
    ])
    const cuts = IS_LONG ? all : [all[SEED % all.length]!, ...all.slice(-2)]
    for (const cut of cuts) await countStartStatements(kind, cut)
  })

for (const kind of ['edge', 'worker'] as const)
  test(`${kind}: waits for a server without free connections`, async () => {
    const role = `crowded_${kind}_${process.pid}`
    await query(`create role ${role} login password 'p' connection limit 0`)
    try {
      const log: string[] = []
      const starting = launchProcess(kind, url.replace(/\/\/[^@]*@/, `//${role}:p@`), {}, [], log)
      starting.catch(() => {})
      await Promise.race([
        starting,
        until('the log reports the wait', () =>
          log.some((line) => line.includes('Waiting for the database: too many')),
        ),
      ])
      // Superusers are exempt from the connection limit.
      await query(`alter role ${role} superuser`)
      await (await starting).kill()
    } finally {
      await query(`drop role ${role}`)
    }
  })

for (const script of ['edge/main.ts', 'workers/main.ts'])
  test(`${script}: stops waiting for a database when its supervisor exits`, async () => {
    const child = fork(fileURLToPath(new URL(`../../${script}`, import.meta.url)), [], {
      execArgv: SHORT_LIVED_FLAGS,
      env: { ...process.env, DATABASE_URL: 'postgresql://nobody@127.0.0.1:1/none', MILLRACE_SUPERVISED: '1' },
      stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    })
    const ended = once(child, 'exit')
    try {
      const log: string[] = []
      collectLines(child.stdout!, log)
      await until('the log reports the wait', () =>
        log.some((line) => line.includes('Waiting for the database')),
      )
      child.disconnect()
      const late = AbortSignal.timeout(20_000)
      await Promise.race([ended, once(late, 'abort').then(() => assert.fail('it waits on'))])
    } finally {
      child.kill('SIGKILL')
    }
  })
