import { z } from 'zod'
import type { Tools } from '../../../tasks/ai/ports.ts'

/** Tools of a request, in the form of OpenAI's protocol. */

// Limit of OpenAI.
export const MAX_TOOLS = 128

const FunctionName = z.string().regex(/^[a-zA-Z0-9_-]{1,64}$/, 'must have 1 to 64 letters, digits, _ and -')

export const ToolDefinition = z.strictObject({
  type: z.literal('function'),
  function: z.strictObject({
    name: FunctionName,
    description: z.string().max(10_000).optional(),
    /** JSON Schema of an object; absent for a function without parameters. */
    parameters: z.record(z.string(), z.unknown()).optional(),
    strict: z.boolean().nullish(),
  }),
})

export const ToolChoice = z.union([
  z.enum(['auto', 'none', 'required']),
  z.strictObject({ type: z.literal('function'), function: z.strictObject({ name: FunctionName }) }),
])

export const ToolResult = z.strictObject({
  tool_call_id: z.string().min(1).max(200),
  content: z.string().max(100_000),
})

/** The fields of a request that are about tools. */
interface ToolFields {
  readonly tools?: readonly z.output<typeof ToolDefinition>[] | undefined
  readonly tool_choice?: z.output<typeof ToolChoice> | undefined
  readonly parallel_tool_calls?: boolean | undefined
}

/** Checks that the fields fit each other. */
export function checkTools(
  { tools, tool_choice: choice, parallel_tool_calls }: ToolFields,
  ctx: z.RefinementCtx,
): void {
  const names = (tools ?? []).map((tool) => tool.function.name)
  const repeated = names.find((name, index) => names.indexOf(name) !== index)
  const problem = (field: string, message: string): void =>
    ctx.addIssue({ code: 'custom', path: [field], message })
  if (repeated !== undefined) problem('tools', `must not define ${repeated} twice`)
  if (tools === undefined && choice !== undefined && choice !== 'none') problem('tool_choice', 'needs tools')
  if (tools === undefined && parallel_tool_calls !== undefined) problem('parallel_tool_calls', 'needs tools')
  if (tools !== undefined && typeof choice === 'object' && !names.includes(choice.function.name))
    problem('tool_choice', `names no function of tools`)
}

/** Returns the tools of a question; undefined if the request has none. */
export function toTools({
  tools,
  tool_choice: choice,
  parallel_tool_calls: parallel,
}: ToolFields): Tools | undefined {
  if (tools === undefined) return undefined
  return {
    definitions: [...tools],
    ...(choice === undefined ? {} : { choice }),
    ...(parallel === undefined ? {} : { parallel }),
  }
}
