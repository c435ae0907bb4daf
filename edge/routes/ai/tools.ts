import { z } from 'zod'
import type { Tools } from '../../../tasks/ai/ports.ts'
import type { ResponseFormat } from '../../../tasks/ai/shapes.ts'

/** Tools of a request, in the form of OpenAI's protocol. */

// Limit of OpenAI.
export const MAX_TOOLS = 128

const FunctionName = z.string().regex(/^[a-zA-Z0-9_-]{1,64}$/, 'must have 1 to 64 letters, digits, _ and -')

/** Fields that other clients add, such as `cache_control`, are dropped. */
export const ToolDefinition = z.object({
  type: z.literal('function'),
  function: z.object({
    name: FunctionName,
    description: z.string().max(10_000).optional(),
    /** JSON Schema of an object; absent for a function without parameters. */
    parameters: z.record(z.string(), z.unknown()).optional(),
    strict: z.boolean().optional(),
  }),
})

// Some gateways put a signature into the id.
export const ToolCallId = z.string().min(1).max(10_000)

export const ToolChoice = z.union([
  z.enum(['auto', 'none', 'required']),
  z.strictObject({ type: z.literal('function'), function: z.strictObject({ name: FunctionName }) }),
])

export const ToolResult = z.strictObject({
  tool_call_id: ToolCallId,
  content: z.string().max(100_000),
})

/** The fields of a request that are about tools. */
interface ToolFields {
  readonly tools?: readonly z.output<typeof ToolDefinition>[] | undefined
  readonly tool_choice?: z.output<typeof ToolChoice> | undefined
  readonly parallel_tool_calls?: boolean | undefined
  readonly response_format?: z.output<typeof ResponseFormat> | { readonly type: 'text' } | undefined
}

/** Checks that the fields fit each other. */
export function checkTools(
  { tools: given, tool_choice: choice, parallel_tool_calls, response_format: format }: ToolFields,
  ctx: z.RefinementCtx,
): void {
  const tools = given?.length === 0 ? undefined : given
  const names = (tools ?? []).map((tool) => tool.function.name)
  const repeated = names.find((name, index) => names.indexOf(name) !== index)
  const problem = (field: string, message: string): void =>
    ctx.addIssue({ code: 'custom', path: [field], message })
  if (repeated !== undefined) problem('tools', `must not define ${repeated} twice`)
  if (tools === undefined && choice !== undefined && choice !== 'none') problem('tool_choice', 'needs tools')
  if (tools === undefined && parallel_tool_calls !== undefined) problem('parallel_tool_calls', 'needs tools')
  if (tools !== undefined && typeof choice === 'object' && !names.includes(choice.function.name))
    problem('tool_choice', `names no function of tools`)
  const root = format?.type === 'json_schema' ? format.json_schema.schema.type : undefined
  if (root !== undefined && root !== 'object' && root !== 'array')
    problem('response_format', 'must have a schema of an object or an array')
}

/** Returns the tools of a question; undefined if the request has none. */
export function toTools({
  tools,
  tool_choice: choice,
  parallel_tool_calls: parallel,
}: ToolFields): Tools | undefined {
  if (tools === undefined || tools.length === 0) return undefined
  return {
    definitions: [...tools],
    ...(choice === undefined ? {} : { choice }),
    ...(parallel === undefined ? {} : { parallel }),
  }
}
