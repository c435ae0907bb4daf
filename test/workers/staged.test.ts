import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Claimed } from '../../sql/jobs.ts'
import { createRoom } from '../../sql/room.ts'
import { createPuller } from '../../workers/staged.ts'
import { until } from '../until.ts'

/** How a lane takes what is staged, over a ledger in memory. */

function lane(places: number, backlog: Record<number, number>) {
  const room = createRoom(places)
  const ran: number[] = []
  const asked: [most: number, afterOwner: number][] = []
  const running: (() => void)[] = []
  const puller = createPuller({
    room,
    places,
    take: async (most, afterOwner) => {
      asked.push([most, afterOwner])
      const owners = Object.keys(backlog)
        .map(Number)
        .filter((owner) => owner > afterOwner && backlog[owner]! > 0)
      const jobs: Claimed[] = []
      const part = Math.ceil(most / owners.length)
      for (const owner of owners)
        for (let i = 0; i < part && backlog[owner]! > 0 && jobs.length < most; i++) {
          backlog[owner]!--
          jobs.push({ owner_id: owner } as Claimed)
        }
      return jobs
    },
    run: async ({ owner_id }) => {
      ran.push(owner_id!)
      await new Promise<void>((resolve) => running.push(resolve))
    },
    onError: (error) => assert.fail(String(error)),
  })
  const end = (): void => {
    for (const resolve of running.splice(0)) resolve()
  }
  return { room, ran, asked, puller, end, running }
}

test('no more is taken than there are places, and the next as soon as one is free', async () => {
  const { ran, puller, end, running } = lane(2, { 1: 5 })
  puller.nudge()
  await until('two run', () => ran.length === 2)
  puller.nudge()
  assert.equal(ran.length, 2)
  for (let count = 2; count < 5; ) {
    end()
    count = Math.min(5, count + 2)
    await until('the next run', () => ran.length === count && running.length > 0)
  }
  end()
  await puller.stop()
})

test('with fewer places than owners each has its turn', async () => {
  const { ran, puller, end, running } = lane(1, { 1: 4, 2: 2, 3: 2 })
  puller.nudge()
  for (let count = 1; count <= 8; count++) {
    await until('one runs', () => running.length === 1)
    end()
  }
  assert.deepEqual(ran.slice(0, 6), [1, 2, 3, 1, 2, 3])
  assert.equal(ran.length, 8)
  await puller.stop()
})

test('once it is stopped nothing is taken', async () => {
  const { asked, puller } = lane(2, { 1: 5 })
  await puller.stop()
  puller.nudge()
  assert.deepEqual(asked, [])
})
