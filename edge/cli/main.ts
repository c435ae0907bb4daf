import { enableCodeCache } from '../../tasks/platform/code-cache.ts'

enableCodeCache()
const { runCommandLine } = await import('./run.ts')

// Exit statuses of processes that a signal ends: 128 plus its number.
const SIGNAL_STATUSES = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const

const interrupt = new AbortController()
for (const [signal, status] of Object.entries(SIGNAL_STATUSES))
  process.once(signal as NodeJS.Signals, () => interrupt.abort(status))
// If the reader of the results has gone, such as `| head`, the command ends as after Ctrl-C. Notes are not needed.
for (const stream of [process.stdout, process.stderr])
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
    if (stream === process.stdout) interrupt.abort(0)
  })

const { env, stdin, stdout, stderr } = process
const io = { env, stdin, stdout, stderr, signal: interrupt.signal, now: Date.now }
process.exitCode = await runCommandLine(process.argv.slice(2), io)
