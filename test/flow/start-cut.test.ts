import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testDatabase } from '../database.ts'
import { LONG, SEED } from '../runs.ts'
import { launch } from '../service.ts'
import { type Cut, openCountingLink } from './statements.ts'

/** A process that loses a connection while it starts. */

const { url } = await testDatabase()
const link = await openCountingLink(url)

async function statementsOfStart(kind: 'edge' | 'worker', cut: Cut | null): Promise<number> {
  link.arm(cut)
  const child = await launch(kind, link.url)
  const { statements } = link
  await child.kill()
  return statements
}

for (const kind of ['edge', 'worker'] as const)
  test(`${kind}: it starts, whichever of its statements loses its connection`, async () => {
    const count = await statementsOfStart(kind, null)
    assert.ok(count >= 3, `${count} statements`)
    const all = Array.from({ length: count }, (_, i) => i + 1).flatMap((at): Cut[] => [
      { at, when: 'before' },
      { at, when: 'after' },
    ])
    const cuts = LONG ? all : [all[SEED % all.length]!, ...all.slice(-2)]
    for (const cut of cuts) await statementsOfStart(kind, cut)
  })
