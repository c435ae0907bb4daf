import http from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'

/** A client in a separate process that signs in. Each order is one run. */

export interface Login {
  readonly username: string
  readonly password: string
}

export type LoginOrder =
  /** Sends logins one after another and returns their durations in ms. */
  | {
      readonly kind: 'measure'
      readonly port: number
      readonly status: number
      readonly logins: readonly Login[]
    }
  /** Sends logins in turn at a steady rate until `stop`, without waiting for answers. */
  | {
      readonly kind: 'start'
      readonly port: number
      readonly perSecond: number
      readonly logins: readonly Login[]
    }
  /** Stops, and returns the rate of logins per second and their durations in ms. */
  | { readonly kind: 'stop' }

export interface LoginResult {
  readonly ms: readonly number[]
  readonly perSecond: number
}

const agent = new http.Agent({ keepAlive: true, maxSockets: 8, noDelay: true })
let running: { stopping: boolean; done: Promise<LoginResult> } | null = null

process.on('message', (order: LoginOrder) => {
  runOrder(order).then(
    (result) => process.send!({ result }),
    (error: Error) => process.send!({ error: error.stack ?? String(error) }),
  )
})
process.on('disconnect', () => process.exit())
process.send!({})

async function runOrder(order: LoginOrder): Promise<LoginResult> {
  if (order.kind === 'start') {
    const state = { stopping: false, done: Promise.resolve<LoginResult>({ ms: [], perSecond: 0 }) }
    state.done = sendSteadily(order, state)
    running = state
    return { ms: [], perSecond: 0 }
  }
  if (order.kind === 'stop') {
    running!.stopping = true
    return running!.done
  }
  const ms: number[] = []
  for (const login of order.logins) ms.push(await sendLogin(order.port, login, order.status))
  return { ms, perSecond: 0 }
}

async function sendSteadily(
  { port, perSecond, logins }: Extract<LoginOrder, { kind: 'start' }>,
  state: { readonly stopping: boolean },
): Promise<LoginResult> {
  const all: Promise<number>[] = []
  const startedAt = performance.now()
  while (!state.stopping) {
    all.push(sendLogin(port, logins[all.length % logins.length]!, 200))
    await delay(Math.max(0, startedAt + (all.length * 1000) / perSecond - performance.now()))
  }
  const ms = await Promise.all(all)
  return { ms, perSecond: ms.length / ((performance.now() - startedAt) / 1000) }
}

function sendLogin(port: number, { username, password }: Login, status: number): Promise<number> {
  const body = new URLSearchParams({ username, password }).toString()
  const headers = {
    'content-type': 'application/x-www-form-urlencoded',
    'content-length': String(body.length),
  }
  return new Promise((resolve, reject) => {
    const path = '/api/v1/auth/token'
    const request = http.request({ host: '127.0.0.1', port, method: 'POST', path, headers, agent })
    const sentAt = performance.now()
    request.on('error', reject).on('response', (response) => {
      const ms = performance.now() - sentAt
      response.resume().on('end', () => {
        if (response.statusCode === status) resolve(ms)
        else reject(new Error(`A login was answered ${response.statusCode} instead of ${status}`))
      })
    })
    request.end(body)
  })
}
