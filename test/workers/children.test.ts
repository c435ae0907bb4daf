import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { MessageChannel } from 'node:worker_threads'
import { Failure } from '../../sql/errors.ts'
import { readUsage } from '../../tasks/platform/process-usage.ts'
import { createChildrenClient, serveChildren } from '../../workers/children/client.ts'
import { createChildPool } from '../../workers/children/pool.ts'
import { type ChildLease, ChildLost, type Children, type Limits } from '../../workers/children/ports.ts'
import { analyzeFile } from '../../workers/providers/documents/analysis.ts'
import { blockThread, until } from '../until.ts'
import { log } from './parts.ts'

/** Tests the pool of child processes, both directly and over a port. The children do what the test asks. */

const entry = fileURLToPath(new URL('fixtures/work-child.ts', import.meta.url))
const AMPLE_LIMITS: Limits = { cpuMs: 60_000 }

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

/**
 * Sends a request to a child. The cast is needed because the fixture's requests are not part of the real request type.
 */
const ask = (
  lease: ChildLease,
  kind: string,
  request: unknown = null,
  limits = AMPLE_LIMITS,
): Promise<unknown> => lease.ask(kind as never, request as never, limits)

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

const usePoolDirectly = (pool: Children): Children => pool

// This pool's child serves every kind of request, as in production.
const productionPool = createChildPool({ log, concurrency: 1 })
after(() => productionPool.close())

for (const [how, reached] of [
  ['in its own process', usePoolDirectly],
  ['over a port', servePort],
] as const) {
  describe(how, () => {
    // Pool for tests that release their children.
    const shared = reached(createPool())
    const alone = reached(createPool({ concurrency: 1 }))

    test('a child answers, even without JSON, and returns failures for clients', async () => {
      const lease = await shared.lease()
      const value = { bytes: new Uint8Array([1, 2]), map: new Map([[1, undefined]]) }
      assert.deepEqual(await ask(lease, 'echo', value), value)
      const isRefused = (error: unknown) => error instanceof Failure && error.code === 'import.refused'
      await assert.rejects(ask(lease, 'refuse'), isRefused)
      await assert.rejects(ask(lease, 'throw'), /TypeError: a mistake of ours/)
      assert.equal(await ask(lease, 'echo', 'still there'), 'still there')
      lease.release()
    })

    test('a child that could not load a module costs no try, and is replaced', async () => {
      const lease = await shared.lease()
      const pid = await ask(lease, 'pid')
      const isShort = (error: unknown) => error instanceof Failure && error.code === 'service.short'
      await assert.rejects(ask(lease, 'load', './no-such-module.ts'), isShort)
      lease.release()
      const next = await shared.lease()
      assert.notEqual(await ask(next, 'pid'), pid)
      next.release()
    })

    test('a child serves the next caller, without traces of the last one', async () => {
      const first = await shared.lease()
      const pid = await ask(first, 'pid')
      assert.equal(await ask(first, 'remember', 'a secret'), null)
      first.release()
      const second = await shared.lease()
      assert.deepEqual([await ask(second, 'pid'), await ask(second, 'remember', 'x')], [pid, null])
      second.release()
    })

    test('work over its CPU limit is killed, and its position is reported', async () => {
      const lease = await shared.lease()
      await assert.rejects(ask(lease, 'spin', 60_000, { cpuMs: 100 }), isLost('cpu', 7))
      await assert.rejects(ask(lease, 'echo'), isLost('cpu'))
      lease.release()
    })

    test('work that hangs without computing is killed by the time limit', async () => {
      const lease = await shared.lease()
      await assert.rejects(ask(lease, 'hang', null, { cpuMs: 60_000, wallMs: 50 }), isLost('time'))
    })

    test('a fatal error of V8, an abort and an exit end only the child', async () => {
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

    test('an abort kills the child and frees its slot', async () => {
      const pool = createPool({ concurrency: 1 })
      const children = reached(pool)
      const abort = new AbortController()
      const lease = await children.lease({ signal: abort.signal })
      const pid = (await ask(lease, 'pid')) as number
      const hanging = ask(lease, 'hang')
      abort.abort(new Error('cancelled'))
      await assert.rejects(hanging, /cancelled/)
      await until('the process has exited', () => readUsage(pid) === null)
      const next = await children.lease()
      assert.notEqual(await ask(next, 'pid'), pid)
      next.release()
      await assert.rejects(children.lease({ signal: AbortSignal.abort(new Error('before')) }), /before/)
    })

    test('a caller that wants only a free child gets null if there is none', async () => {
      const first = await alone.lease({ ifFree: true })
      assert.notEqual(first, null)
      assert.equal(await alone.lease({ ifFree: true }), null)
      first!.release()
      await until('the child is free again', async () => {
        const again = await alone.lease({ ifFree: true })
        again?.release()
        return again !== null
      })
    })

    test('a file reaches a child completely and once, also from a buffer', async () => {
      const children = reached(productionPool)
      const line = '0123456789 and so on, to the end of the line\n'
      const bytes = Buffer.from(line.repeat(30_000))
      const file = { format: 'text', fileName: 'long.txt' } as const
      const analyzed = await analyzeFile(children, bytes, file, new AbortController().signal)
      assert.equal(bytes.length, 30_000 * line.length)
      assert.ok('chunks' in analyzed)
      assert.equal(analyzed.chunks.at(-1)!.endOffset, bytes.length - 1)
    })

    test('a caller that gave up waiting is skipped', async () => {
      const holder = await alone.lease()
      const abort = new AbortController()
      const impatient = alone.lease({ signal: abort.signal })
      const patient = alone.lease()
      abort.abort(new Error('too long'))
      await assert.rejects(impatient, /too long/)
      holder.release()
      ;(await patient).release()
    })

    test('callers wait in order, an urgent one has its own slot, and the holder is asked to release', async () => {
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

test('an owner without a child gets one before a flood of others, then the one with the fewest', async () => {
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

test('a child that does not start is not blamed on the request', async () => {
  for (const broken of ['fixtures/no-such-file.ts', 'fixtures/not-a-child.ts']) {
    const lease = await createPool({ entry: fileURLToPath(new URL(broken, import.meta.url)) }).lease()
    const error = (await ask(lease, 'echo').catch((reason: unknown) => reason)) as Failure
    assert.equal(error.code, 'service.short')
    assert.match(String(error.cause), /^Error: A child process did not start/)
  }
})

test('a closed pool rejects waiting callers', async () => {
  const pool = createPool({ concurrency: 1 })
  await pool.lease()
  const waiting = pool.lease()
  await pool.close()
  await assert.rejects(waiting, /closed/)
  await assert.rejects(createChildrenClient((port) => serveChildren(pool, port)).lease(), /closed/)
})

test('a request before the last answer is rejected, and releasing a busy child kills it', async () => {
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

test('an answer that cannot be sent is our error, and the child continues', async () => {
  const lease = await createPool().lease()
  await assert.rejects(ask(lease, 'unsendable'), /could not be cloned/)
  assert.equal(await ask(lease, 'echo', 1), 1)
  lease.release()
})

test('resident memory outside of the heap is limited', async () => {
  const lease = await createPool({ limits: { heapMb: 64, rssBytes: 300 * 2 ** 20 } }).lease()
  await assert.rejects(ask(lease, 'buffers', 4096), isLost('memory'))
})

test('a huge single allocation fails in the child', async () => {
  const lease = await createPool({ limits: { heapMb: 64, rssBytes: 2 ** 40 } }).lease()
  await assert.rejects(ask(lease, 'reserve', 3072), /Array buffer allocation failed/)
})

test('a child that has grown large is not reused', async () => {
  const children = createPool({ limits: { heapMb: 64, rssBytes: 2 ** 30 } })
  const first = await children.lease()
  const pid = await ask(first, 'pid')
  await ask(first, 'buffers', 450)
  first.release()
  const second = await children.lease()
  assert.notEqual(await ask(second, 'pid'), pid)
  second.release()
})

test('an answer that arrived while the parent was busy is not late', async () => {
  const lease = await createPool().lease()
  await ask(lease, 'echo')
  // The parent must read answers before it checks time limits, or a child that answered in time is killed.
  assert.equal(await askWhileBlocked(lease, AMPLE_LIMITS), 'signed')
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

test('an idle child exits, and no child survives its pool', async () => {
  const pool = createPool({ idleMs: 10 })
  const lease = await pool.lease()
  const pid = (await ask(lease, 'pid')) as number
  lease.release()
  await until('the idle child has exited', () => readUsage(pid) === null)
  assert.equal(pool.size, 0)
  const other = await pool.lease()
  const last = (await ask(other, 'pid')) as number
  await pool.close()
  await until('the last child has exited', () => readUsage(last) === null)
})

test('a busy child exits soon after its parent was killed', async () => {
  const parent = fork(new URL('fixtures/work-parent.ts', import.meta.url), {
    execArgv: ['--disable-warning=ExperimentalWarning'],
  })
  const [pid] = (await once(parent, 'message')) as [number]
  assert.notEqual(readUsage(pid), null)
  parent.kill('SIGKILL')
  await until('the child has exited', () => readUsage(pid) === null)
})

test('a child has no access to the settings', async () => {
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

test("a child held by a thread is killed when the thread's port closes", async () => {
  const pool = createPool({ concurrency: 1 })
  const { port1, port2 } = new MessageChannel()
  serveChildren(pool, port2)
  port1.postMessage({ kind: 'lease', lease: 1, urgent: false })
  port1.postMessage({ kind: 'ask', lease: 1, work: 'hang', request: null, limits: AMPLE_LIMITS })
  await until('the thread has a child', () => pool.size === 1)
  port1.close()
  await until('the child has exited', () => pool.size === 0)
})
