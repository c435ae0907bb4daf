import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRoom } from '../../sql/room.ts'

/** Places that work takes. */

const turn = () => new Promise((resolve) => setImmediate(resolve))

function guests(places: number) {
  const room = createRoom(places)
  const entered: string[] = []
  const ends = new Map<string, () => void>()
  const enter = (name: string): Promise<void> =>
    room.enter(
      () =>
        new Promise<void>((resolve) => {
          entered.push(name)
          ends.set(name, resolve)
        }),
    )
  const end = async (name: string): Promise<void> => {
    ends.get(name)!()
    await turn()
  }
  return { room, entered, enter, end }
}

test('as many are inside as there are places, the others come in in their order', async () => {
  const { room, entered, enter, end } = guests(2)
  const all = ['a', 'b', 'c', 'd'].map(enter)
  await turn()
  assert.deepEqual([entered, room.inside, room.waiting], [['a', 'b'], 2, 2])
  await end('b')
  assert.deepEqual([entered, room.inside, room.waiting], [['a', 'b', 'c'], 2, 1])
  for (const name of ['a', 'c', 'd']) await end(name)
  await Promise.all(all)
  assert.deepEqual([entered, room.inside, room.waiting], [['a', 'b', 'c', 'd'], 0, 0])
})

test('who is admitted does not wait, and beyond the places hands none on', async () => {
  const { room, entered, enter, end } = guests(1)
  room.admit()
  room.admit()
  const waiting = enter('a')
  await turn()
  assert.deepEqual([entered, room.inside, room.waiting], [[], 2, 1])
  room.leave()
  await turn()
  assert.deepEqual([entered, room.inside], [[], 1])
  room.leave()
  await turn()
  assert.deepEqual([entered, room.inside, room.waiting], [['a'], 1, 0])
  await end('a')
  await waiting
})

test('it is empty when the last has left', async () => {
  const { room, enter, end } = guests(1)
  await room.emptied()
  const all = ['a', 'b'].map(enter)
  await turn()
  let empty = false
  const emptied = room.emptied().then(() => {
    empty = true
  })
  await end('a')
  assert.equal(empty, false)
  await end('b')
  await Promise.all([emptied, ...all])
})

test('work that fails leaves, too', async () => {
  const { room } = guests(1)
  await assert.rejects(
    room.enter(() => Promise.reject(new Error('no'))),
    /no/,
  )
  assert.equal(room.inside, 0)
})
