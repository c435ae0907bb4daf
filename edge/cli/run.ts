import { findNearestName } from '../../tasks/platform/nearest-name.ts'
import { RequestError } from '../client/connection.ts'
import { type Api, createApi } from './api.ts'
import { formatHelp, formatPairs, parseArguments } from './arguments.ts'
import type { Command } from './command.ts'
import { describeFailure } from './failure.ts'
import { type Io, STATUS, UsageError } from './io.ts'
import { createOutput } from './output.ts'

/** Runs a command line: finds the command, and loads only its file. */

const DEFAULT_URL = 'http://127.0.0.1:8000'

interface Entry {
  readonly about: string
  readonly load: () => Promise<Command>
}

const COMMANDS: Readonly<Record<string, Entry>> = {
  enqueue: { about: 'add a job', load: async () => (await import('./commands/enqueue.ts')).enqueue },
  jobs: { about: 'list jobs, or follow them', load: async () => (await import('./commands/jobs.ts')).jobs },
  logs: {
    about: 'show the events and log lines of a job',
    load: async () => (await import('./commands/logs.ts')).logs,
  },
  retry: { about: 'retry failed jobs', load: async () => (await import('./commands/change.ts')).retry },
  cancel: { about: 'cancel jobs', load: async () => (await import('./commands/change.ts')).cancel },
  batch: { about: 'add a batch of jobs', load: async () => (await import('./commands/batch.ts')).batch },
  'webhooks listen': {
    about: 'forward webhooks to a program on this machine',
    load: async () => (await import('./commands/listen.ts')).listen,
  },
  'webhooks trigger': {
    about: 'send a test event',
    load: async () => (await import('./commands/trigger.ts')).trigger,
  },
  'new task': {
    about: 'write the files of a built-in task',
    load: async () => (await import('./commands/new-task.ts')).newTask,
  },
}

const OVERVIEW = `Usage: npx millrace COMMAND [options]

${formatPairs(Object.entries(COMMANDS).map(([name, { about }]) => [name, about]))}

\`npx millrace COMMAND --help\` shows the options of a command, with an example.

  MILLRACE_URL  address of the service; default ${DEFAULT_URL}
  MILLRACE_KEY  API key or token

Exit statuses: 0 done, 1 a job failed or was cancelled, 2 wrong arguments, 3 the service refused the request,
4 the service did not answer, 130 Ctrl-C.
`

/** Runs a command and returns the exit status. */
export async function runCommandLine(words: readonly string[], io: Io): Promise<number> {
  const first = words[0] ?? ''
  if (['--help', '-h', 'help'].includes(first)) {
    io.stdout.write(OVERVIEW)
    return STATUS.done
  }
  const name = [words.slice(0, 2).join(' '), first].find((candidate) => Object.hasOwn(COMMANDS, candidate))
  if (name === undefined) {
    io.stderr.write(words.length === 0 ? OVERVIEW : `${describeUnknown(words)}\n`)
    return STATUS.usage
  }
  const command = await COMMANDS[name]!.load()
  try {
    return await runCommand(name, command, words.slice(name.split(' ').length), io)
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    io.stderr.write(`${error.message}\nSee: npx millrace ${name} --help\n`)
    return STATUS.usage
  }
}

function describeUnknown(words: readonly string[]): string {
  const names = Object.keys(COMMANDS)
  const group = names.filter((name) => name.startsWith(`${words[0]} `))
  if (group.length > 0) return `Commands of ${words[0]}: ${group.join(', ')}`
  const nearest = findNearestName(words[0]!, names)
  const hint = nearest === null ? 'See: npx millrace --help' : `Did you mean ${nearest}?`
  return `Unknown command: ${words[0]}. ${hint}`
}

async function runCommand(name: string, command: Command, words: readonly string[], io: Io): Promise<number> {
  const { values, args } = parseArguments(words, command)
  if (values.help !== undefined) {
    io.stdout.write(formatHelp(name, command))
    return STATUS.done
  }
  const url = (values.url as string | undefined) ?? (io.env.MILLRACE_URL || DEFAULT_URL)
  const key = (values['api-key'] as string | undefined) ?? (io.env.MILLRACE_KEY || undefined)
  const out = createOutput(io, values.json !== undefined)
  const onLost = () => out.note('The service does not answer; trying again')
  let api: Api | undefined
  try {
    return await command.run({
      values,
      args,
      io,
      out,
      get api() {
        api ??= createApi({ url, key, signal: io.signal, onLost })
        return api
      },
    })
  } catch (error) {
    if (io.signal.aborted && !(error instanceof RequestError)) return io.signal.reason as number
    const failure = describeFailure(error, { url, hasKey: key !== undefined, scopes: command.scopes })
    if (failure === null) throw error
    for (const line of failure.lines) out.note(line)
    return failure.status
  }
}
