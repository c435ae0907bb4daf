import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { MessageChannel } from 'node:worker_threads'
import { Failure } from '../../sql/errors.ts'
import { createChildrenClient, serveChildren } from '../../workers/children/client.ts'
import { createChildPool } from '../../workers/children/pool.ts'
import { type ChildLease, ChildLost, type Children, type Limits } from '../../workers/children/ports.ts'
import { readUsage } from '../../workers/children/usage.ts'
import { analyzeFile } from '../../workers/providers/documents/analysis.ts'
import { blockThread, until } from '../until.ts'
import { log } from './parts.ts'

/** Tests the pool of child processes, in its own process and over a port. The children do what the test asks. */

const entry = new URL('fixtures/work-child.ts', import.meta.url).pathname
const AMPLE: Limits = { cpuMs: 60_000 }

function createPool(options: Partial<Parameters<typeof createChildPool>[0]> = {}) {
  const pool = createChildPool({
    log,
    entry,
    // `drawSign` writes to this folder.
    writes: [join(tmpdir(), '*')],
    concurrency: 2,
    checkMs: 10,
    ...options,
  })
  after(() => pool.close())
  return pool
}

/** Sends a request to a child. Casts it, because the fixture's requests are not part of the real request type. */
const ask = (lease: ChildLease, kind: string, request: unknown = null, limits = AMPLE): Promise<unknown> =>
  lease.ask(kind as never, request as never, limits)

const isLost =
  (why: ChildLost['lossReason'], at: number | null = null) =>
  (error: unknown) => {
    assert.ok(error instanceof ChildLost, String(error))
    assert.deepEqual([error.lossReason, error.at], [why, at])
    return true
  }

/** Returns the pool as a task thread sees it: over a port. */
function servePort(pool: Children): Children {
  return createChildrenClient((port) => serveChildren(pool, port))
}

const inProcess = (pool: Children): Children => pool

// This pool's child serves every kind of request, as in production.
const whole = createChildPool({ log, concurrency: 1 })
after(() => whole.close())

for (const [how, reached] of [
  ['in its own process', inProcess],
  ['over a port', servePort],
] as const) {
  describe(how, () => {
    // Pool for tests that release their children.
    const shared = reached(createPool())
    const alone = reached(createPool({ concurrency: 1 }))

    test('a child answers, what cannot be JSON as well, and tells what a client may be told', async () => {
      const lease = await shared.lease()
      const value = { bytes: new Uint8Array([1, 2]), map: new Map([[1, undefined]]) }
      assert.deepEqual(await ask(lease, 'echo', value), value)
      const isRefused = (error: unknown) => error instanceof Failure && error.code === 'import.refused'
      await assert.rejects(ask(lease, 'refuse'), isRefused)
      await assert.rejects(ask(lease, 'throw'), /TypeError: a mistake of ours/)
      assert.equal(await ask(lease, 'echo', 'still there'), 'still there')
      lease.release()
    })

    test('a child serves the next caller, without a trace of the last one', async () => {
      const first = await shared.lease()
      const pid = await ask(first, 'pid')
      assert.equal(await ask(first, 'remember', 'a secret'), null)
      first.release()
      const second = await shared.lease()
      assert.deepEqual([await ask(second, 'pid'), await ask(second, 'remember', 'x')], [pid, null])
      second.release()
    })

    test('what passes its limit of CPU time is killed, and says where it was', async () => {
      const lease = await shared.lease()
      await assert.rejects(ask(lease, 'spin', 60_000, { cpuMs: 100 }), isLost('cpu', 7))
      await assert.rejects(ask(lease, 'echo'), isLost('cpu'))
      lease.release()
    })

    test('what hangs without computing is killed by the clock', async () => {
      const lease = await shared.lease()
      await assert.rejects(ask(lease, 'hang', null, { cpuMs: 60_000, wallMs: 50 }), isLost('time'))
    })

    test('a fatal error of V8, an abort and an exit cost the child alone', async () => {
      const children = reached(createPool({ limits: { heapMb: 64, rssBytes: 2 ** 32 } }))
      for (const [kind, why] of [
        ['array', 'memory'],
        ['abort', 'crash'],
        ['exit', 'crash'],
      ] as const) {
        const lease = await children.lease()
        await assert.rejects(ask(lease, kind), isLost(why))
      }
      const lease = await children.lease()
      assert.equal(await ask(lease, 'echo', 1), 1)
      lease.release()
    })

    test('an abort kills the child and gives its place free', async () => {
      const pool = createPool({ concurrency: 1 })
      const children = reached(pool)
      const abort = new AbortController()
      const lease = await children.lease({ signal: abort.signal })
      const pid = (await ask(lease, 'pid')) as number
      const hanging = ask(lease, 'hang')
      abort.abort(new Error('cancelled'))
      await assert.rejects(hanging, /cancelled/)
      await until('the process is gone', () => readUsage(pid) === null)
      const next = await children.lease()
      assert.notEqual(await ask(next, 'pid'), pid)
      next.release()
      await assert.rejects(children.lease({ signal: AbortSignal.abort(new Error('before')) }), /before/)
    })

    test('who asks for a child only if one is free is told when there is none', async () => {
      const first = await alone.lease({ ifFree: true })
      assert.notEqual(first, null)
      assert.equal(await alone.lease({ ifFree: true }), null)
      first!.release()
      await until('it is free again', async () => {
        const again = await alone.lease({ ifFree: true })
        again?.release()
        return again !== null
      })
    })

    test('a file reaches a child whole, from a buffer as well, and only once', async () => {
      const children = reached(whole)
      const line = '0123456789 and so on, to the end of the line\n'
      const bytes = Buffer.from(line.repeat(30_000))
      const file = { format: 'text', fileName: 'long.txt' } as const
      const analyzed = await analyzeFile(children, bytes, file, new AbortController().signal)
      assert.equal(bytes.length, 30_000 * line.length)
      assert.ok('chunks' in analyzed)
      assert.equal(analyzed.chunks.at(-1)!.endOffset, bytes.length - 1)
    })

    test('who gives up waiting is passed over', async () => {
      const holder = await alone.lease()
      const abort = new AbortController()
      const impatient = alone.lease({ signal: abort.signal })
      const patient = alone.lease()
      abort.abort(new Error('too long'))
      await assert.rejects(impatient, /too long/)
      holder.release()
      ;(await patient).release()
    })

    test('others wait their turn, the urgent one has a place of its own, and the holder is told', async () => {
      const order: string[] = []
      const holder = await alone.lease()
      const [second, third] = ['second', 'third'].map((name) =>
        alone.lease().then((lease) => {
          order.push(name)
          return lease
        }),
      )
      const urgent = await alone.lease({ urgent: true })
      order.push('urgent')
      await ask(holder, 'echo')
      assert.equal(holder.shouldRelease, true)
      urgent.release()
      holder.release()
      ;(await second!).release()
      ;(await third!).release()
      assert.deepEqual(order, ['urgent', 'second', 'third'])
    })
  })
}

test('an owner who has none at work gets one beside the flood of another, and then the one who has the fewest', async () => {
  const pool = createPool({ concurrency: 2 })
  const order: number[] = []
  const lease = (owner: number) =>
    pool.lease({ owner }).then((given) => {
      order.push(owner)
      return given
    })
  const [first, second] = await Promise.all([lease(1), lease(1)])
  const flood = [lease(1), lease(1)]
  const [small, more] = [await lease(2), lease(2)]
  assert.deepEqual(order, [1, 1, 2])
  const third = lease(3)
  // All three children of the pool are busy.
  first!.release()
  ;(await third).release()
  assert.deepEqual(order.slice(3), [3])
  small.release()
  ;(await more).release()
  assert.deepEqual(order.slice(4, 5), [2])
  second!.release()
  for (const one of flood) (await one).release()
  assert.deepEqual(order, [1, 1, 2, 3, 2, 1, 1])
})

test('a child that does not start is no fault of what it was asked', async () => {
  for (const broken of ['fixtures/no-such-file.ts', 'fixtures/not-a-child.ts']) {
    const lease = await createPool({ entry: new URL(broken, import.meta.url).pathname }).lease()
    await assert.rejects(ask(lease, 'echo'), /^Error: A child process did not start/)
  }
})

test('a closed pool refuses who waits', async () => {
  const pool = createPool({ concurrency: 1 })
  await pool.lease()
  const waiting = pool.lease()
  await pool.close()
  await assert.rejects(waiting, /closed/)
  await assert.rejects(createChildrenClient((port) => serveChildren(pool, port)).lease(), /closed/)
})

test('what is asked before the last answer is refused, and who gives back what is at work kills it', async () => {
  const pool = createPool({ concurrency: 1 })
  const lease = await pool.lease()
  await ask(lease, 'echo')
  const hanging = ask(lease, 'hang')
  await assert.rejects(ask(lease, 'echo'), /while another was running/)
  lease.release()
  await assert.rejects(hanging, isLost('crash'))
  const next = await pool.lease()
  assert.equal(await ask(next, 'echo', 1), 1)
  next.release()
})

test('an answer that cannot be sent is a mistake of ours, and the child goes on', async () => {
  const lease = await createPool().lease()
  await assert.rejects(ask(lease, 'unsendable'), /could not be cloned/)
  assert.equal(await ask(lease, 'echo', 1), 1)
  lease.release()
})

test('memory outside of the heap is limited, by what is resident', async () => {
  const lease = await createPool({ limits: { heapMb: 64, rssBytes: 300 * 2 ** 20 } }).lease()
  await assert.rejects(ask(lease, 'buffers', 4096), isLost('memory'))
})

test('what is allocated in one go fails in the child, whatever is watched', async () => {
  const lease = await createPool({ limits: { heapMb: 64, rssBytes: 2 ** 40 } }).lease()
  await assert.rejects(ask(lease, 'reserve', 3072), /Array buffer allocation failed/)
})

test('a child that has grown large is not used again', async () => {
  const children = createPool({ limits: { heapMb: 64, rssBytes: 2 ** 30 } })
  const first = await children.lease()
  const pid = await ask(first, 'pid')
  await ask(first, 'buffers', 450)
  first.release()
  const second = await children.lease()
  assert.notEqual(await ask(second, 'pid'), pid)
  second.release()
})

test('what has answered while its parent was busy is not late', async () => {
  const lease = await createPool().lease()
  await ask(lease, 'echo')
  // The parent must read answers before it checks time limits, or a child that answered in time is killed.
  assert.equal(await askWhileBlocked(lease, AMPLE), 'signed')
  assert.equal(await askWhileBlocked(lease, { cpuMs: 60_000, wallMs: 100 }), 'signed')
  lease.release()
})

/**
 * Sends a request, and blocks this thread until 200 ms after the child has answered. The answer is then still unread.
 */
async function askWhileBlocked(lease: ChildLease, limits: Limits): Promise<unknown> {
  const file = join(mkdtempSync(join(tmpdir(), 'millrace-')), 'signed')
  const answer = ask(lease, 'sign', file, limits)
  // Lets the request leave before this thread blocks.
  await Promise.resolve()
  for (let n = 0; n < 6000 && !existsSync(file); n++) blockThread(5)
  blockThread(200)
  return answer
}

test('an idle child ends, and no child survives its pool', async () => {
  const pool = createPool({ idleMs: 10 })
  const lease = await pool.lease()
  const pid = (await ask(lease, 'pid')) as number
  lease.release()
  await until('it is gone', () => readUsage(pid) === null)
  assert.equal(pool.size, 0)
  const other = await pool.lease()
  const last = (await ask(other, 'pid')) as number
  await pool.close()
  await until('the last one is gone', () => readUsage(last) === null)
})

test('a child that computes is gone soon after its parent was killed', async () => {
  const parent = fork(new URL('fixtures/work-parent.ts', import.meta.url), {
    execArgv: ['--disable-warning=ExperimentalWarning'],
  })
  const [pid] = (await once(parent, 'message')) as [number]
  assert.notEqual(readUsage(pid), null)
  parent.kill('SIGKILL')
  await until('it is gone', () => readUsage(pid) === null)
})

test('a child knows none of the settings', async () => {
  process.env.SECRET_KEY = 'a secret of the service'
  const lease = await createPool().lease()
  const environment = (await ask(lease, 'environment')) as Record<string, string>
  delete process.env.SECRET_KEY
  assert.deepEqual(
    Object.keys(environment).filter((name) => /SECRET|KEY|URL|TOKEN|PASSWORD/.test(name)),
    [],
  )
  lease.release()
})

test('what a thread holds when its port closes is killed', async () => {
  const pool = createPool({ concurrency: 1 })
  const { port1, port2 } = new MessageChannel()
  serveChildren(pool, port2)
  port1.postMessage({ kind: 'lease', lease: 1, urgent: false })
  port1.postMessage({ kind: 'ask', lease: 1, work: 'hang', request: null, limits: AMPLE })
  await until('it has a child', () => pool.size === 1)
  port1.close()
  await until('its child is gone', () => pool.size === 0)
})
