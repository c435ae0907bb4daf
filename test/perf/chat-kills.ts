import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { type AnswerRead, assertAnswerRead, type CheckedAnswer, readAnswer } from '../chat-reader.ts'
import { startModelServer } from '../standins/models.ts'
import type { Child } from './children.ts'
import type { Measured } from './report.ts'
import { queryRows, type Stack } from './stack.ts'

/**
 * `npm run bench -- chat-kills` kills edges and workers at random while hundreds of readers drop and resume their
 * answer streams. Each reader's text must equal the stored answer, and each event must arrive once.
 */

const STREAMS = Number(process.env.BENCH_STREAMS ?? 400)
const CONCURRENT_STREAMS = 40
const EDGES = 2
const WORKERS = 2
const SEED = Number(process.env.BENCH_SEED ?? Date.now() % 1_000_000)
// Each kill ends an attempt of every turn. From the second attempt on, turns run isolated and four at a time, which is
// slower.
const KILL_INTERVAL_MS = 2500
const PIECES = Array.from({ length: 50 }, (_, i) => `piece ${i}, `)

export async function measureChatKills(stack: Stack): Promise<Measured> {
  let seed = SEED
  const random = (): number => {
    seed = (seed * 48_271 + 11) % 2_147_483_647
    return seed / 2_147_483_647
  }
  const models = await startModelServer()
  models.script = () => ({ pieces: PIECES, firstMs: 100 + random() * 300, betweenMs: 10 + random() * 40 })
  const url = await stack.createDatabase()
  const env = {
    OPENAI_API_KEY: 'k',
    OPENAI_BASE_URL: models.url,
    OPEN_AREAS: 'ai,jobs',
    WORKER_QUEUES: 'ai',
    LOG_LEVEL: 'silent',
    WORKER_KEEP_RESULT_SECONDS: '86400',
  }
  const edges = await Promise.all(Array.from({ length: EDGES }, () => stack.edge(url, env)))
  const workers = await Promise.all(Array.from({ length: WORKERS }, () => stack.worker(url, env)))
  const kills = { edges: 0, workers: 0 }
  let over = false
  const killing = (async () => {
    while (!over) {
      await delay(KILL_INTERVAL_MS * (0.5 + random()))
      if (over) return
      if (random() < 0.5) {
        kills.edges++
        await replaceProcess(edges, Math.floor(random() * EDGES), () => stack.edge(url, env))
      } else {
        kills.workers++
        await replaceProcess(workers, Math.floor(random() * WORKERS), () => stack.worker(url, env))
      }
    }
  })()

  const heard: AnswerRead[] = []
  const waiting = Array.from({ length: STREAMS }, (_, i) => i).values()
  const reader = async (): Promise<void> => {
    for (const i of waiting) {
      const stop = i % 8 === 0 ? 5 + random() * 40 : null
      heard.push(
        await readAnswer({
          ports: () => edges.map(({ port }) => port),
          message: `Question ${i}`,
          key: randomUUID(),
          random,
          dropProbability: 0.01,
          ...(stop === null ? {} : { stopWhen: (frames) => frames.length > stop }),
        }),
      )
    }
  }
  await Promise.all(Array.from({ length: CONCURRENT_STREAMS }, reader))
  over = true
  await killing
  const checked = await checkAnswers(url, heard)
  await models.stop()
  return summarize(heard, checked, kills)
}

async function replaceProcess<T extends Child>(all: T[], n: number, start: () => Promise<T>): Promise<void> {
  all[n]!.process.kill('SIGKILL')
  all[n] = await start()
}

async function checkAnswers(
  url: string,
  heard: readonly AnswerRead[],
): Promise<{ wrong: string[]; checked: CheckedAnswer[] }> {
  const wrong: string[] = []
  const checked: CheckedAnswer[] = []
  for (const one of heard) {
    await assertAnswerRead((text, values = []) => queryRows(url, text, values), one).then(
      (row) => checked.push(row),
      (error: Error) => wrong.push(error.message.slice(0, 500)),
    )
  }
  return { wrong, checked }
}

function summarize(
  heard: readonly AnswerRead[],
  { wrong, checked }: { wrong: string[]; checked: CheckedAnswer[] },
  kills: { edges: number; workers: number },
): Measured {
  const of = (status: string): number => checked.filter((one) => one.status === status).length
  const opened = heard.reduce((sum, one) => sum + one.streamCount, 0)
  const restarts = heard.flatMap(({ frames }) => frames.filter(({ event }) => event === 'restart')).length
  return {
    rounds: 1,
    findings: [
      {
        name: 'answers read to their end',
        unit: '',
        values: [heard.length],
        target: { of: 'value', atLeast: STREAMS },
      },
      {
        name: 'answers with a gap, a repeat or another text',
        unit: '',
        values: [wrong.length],
        target: { of: 'value', atMost: 0 },
      },
      { name: 'answers that failed', unit: '', values: [of('failed')], target: { of: 'value', atMost: 0 } },
      { name: 'streams opened', unit: '', values: [opened] },
      { name: 'restarts', unit: '', values: [restarts] },
    ],
    notes: [
      `Seed ${SEED}: ${kills.edges} edges and ${kills.workers} workers killed; ${of('complete')} answers complete, ${of('stopped')} stopped.`,
      ...wrong.slice(0, 3),
    ],
  }
}
