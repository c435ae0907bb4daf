import { fileURLToPath } from 'node:url'
import { parseChoice } from '../arguments.ts'
import { defineCommand } from '../command.ts'
import { STATUS } from '../io.ts'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const POOLS = ['io', 'cpu', 'children', 'model'] as const

export const newTask = defineCommand({
  args: 'AREA.VERB',
  about: 'Writes the declaration, the work and the test of a built-in task, and lists it in tasks/index.ts.',
  notes: 'It changes no other file, and refuses names that exist.',
  options: {
    queue: { value: 'QUEUE', about: 'queue of the task; default that of its area, or system' },
    pool: { value: 'POOL', about: `${POOLS.join(', ')}; default io` },
  },
  example: 'new task mill.grind',
  scopes: [],
  run: async ({ args, values, out }) => {
    const pool = parseChoice('pool', values.pool, POOLS) ?? 'io'
    const { writeTask } = await import('../task-files.ts')
    const { name, test, files } = writeTask(ROOT, args[0]!, { queue: values.queue, pool })
    if (out.isJson) out.json({ name, files })
    else {
      for (const file of files) out.line(file)
      out.note(`Test it: npm test -- ${test}`)
      out.note(
        'Clients reach it by a route: CONTRIBUTING.md shows one. tasks/README.md has all fields of a task.',
      )
    }
    return STATUS.done
  },
})
