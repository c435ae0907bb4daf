import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { createPositions } from '../../edge/pipeline/request/positions.ts'
import type { Wal } from '../../sql/reads/wal.ts'
import { parseSettings } from '../../tasks/platform/settings/settings.ts'

/** Tests WAL positions that the edge remembers per caller, and those that callers send. */

const MAX_LAG_MS = 1_000
const createRequest = (
  who: number | null,
  headers: Readonly<Record<string, string>> = {},
  address = '192.0.2.1',
) =>
  ({
    request: { header: (name: string) => headers[name] ?? '' },
    caller: who === null ? null : { ownerId: who },
    address,
  }) as never

function createPositionMemory(max?: number) {
  const wal = { end: 0 }
  const positions = createPositions(parseSettings({ PROJECT_NAME: 'mill' }), wal as Wal, MAX_LAG_MS, max)
  const write = (who: number | null, end: number, address?: string): void => {
    wal.end = end
    positions.track(createRequest(who, {}, address)).remember()
  }
  return { positions, wal, write }
}

test('the latest position of header, cookie and memory applies', () => {
  const { positions, write } = createPositionMemory()
  write(1, 0x20)
  for (const [headers, wanted] of [
    [{}, 0x20],
    [{ 'millrace-position': '0/30' }, 0x30],
    [{ 'millrace-position': '0/10', cookie: 'a=b; mill_position=0/40; c=d' }, 0x40],
    [{ 'millrace-position': 'x', cookie: 'mill_position=0/' }, 0x20],
  ] as const)
    assert.equal(positions.requiredPosition(createRequest(1, headers)), wanted)
  assert.equal(positions.requiredPosition(createRequest(2)), 0)
})

test('without an account the position is remembered per address, also for accounts at that address', () => {
  const { positions, write } = createPositionMemory()
  write(null, 0x50, '192.0.2.7')
  assert.equal(positions.requiredPosition(createRequest(null, {}, '192.0.2.7')), 0x50)
  assert.equal(positions.requiredPosition(createRequest(3, {}, '192.0.2.7')), 0x50)
  assert.equal(positions.requiredPosition(createRequest(null, {}, '192.0.2.8')), 0)
})

test('a position is forgotten after the maximum replica lag', () => {
  let now = 10_000
  const clock = mock.method(performance, 'now', () => now)
  const { positions, write } = createPositionMemory()
  write(1, 0x10)
  now += MAX_LAG_MS
  write(2, 0x20)
  assert.deepEqual(
    [positions.requiredPosition(createRequest(1)), positions.requiredPosition(createRequest(2))],
    [0x10, 0x20],
  )
  now += MAX_LAG_MS
  assert.deepEqual(
    [positions.requiredPosition(createRequest(1)), positions.requiredPosition(createRequest(2))],
    [0, 0x20],
  )
  now += 10 * MAX_LAG_MS
  assert.equal(positions.requiredPosition(createRequest(2)), 0)
  clock.mock.restore()
})

test('with too many positions the furthest forgotten one applies to all callers', () => {
  const { positions, write } = createPositionMemory(10)
  for (let who = 1; who <= 13; who++) write(who, who)
  assert.deepEqual(
    [1, 13, 999].map((who) => positions.requiredPosition(createRequest(who))),
    [3, 13, 3],
  )
})

test('an answer has the header, and for a browser also the cookie', () => {
  const { positions, wal } = createPositionMemory()
  wal.end = 2 ** 32 + 0xab
  assert.deepEqual(positions.track(createRequest(1, { authorization: 'Bearer x' })).headers(), [
    ['millrace-position', '1/AB'],
  ])
  assert.deepEqual(positions.track(createRequest(1)).headers(), [
    ['millrace-position', '1/AB'],
    ['set-cookie', 'mill_position=1/AB; Path=/; Max-Age=2; HttpOnly; SameSite=Lax'],
  ])
})
