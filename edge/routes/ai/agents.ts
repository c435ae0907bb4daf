import { z } from 'zod'
import { readAgent, readAgents, updateAgent } from '../../../sql/ai.ts'
import { fail } from '../../../sql/errors.ts'
import { json, route } from '../../pipeline/route.ts'
import { Agent, AgentChanges } from './shapes.ts'

/** Who answers, and how. */
export const agentRoutes = [
  route({
    method: 'get',
    path: '/agents',
    summary: 'The agents',
    description: `At most 1000, by slug. model_id null stands for the current model; temperature and max_tokens are those of the \
deployment where an agent sets none.`,
    response: z.array(Agent),
    handle: async ({ edge }) => {
      const { temperature, maxTokens } = edge.settings.ai
      return json((await edge.reader.text(readAgents, [temperature, maxTokens]))!)
    },
  }),

  route({
    method: 'patch',
    path: '/agents/:slug',
    summary: 'Change an agent',
    description: `Only what is given changes, and holds from the next turn on, whichever process it runs on. model_id names a model of \
the current provider, or of another one with its name before it, such as \`anthropic/claude-haiku-4-5\`; null: the current model.`,
    auth: 'operator',
    params: z.object({ slug: z.string() }),
    body: AgentChanges,
    response: Agent,
    errors: ['agent.missing', 'agent.no_fields'],
    handle: async ({ params: { slug }, body, edge }) => {
      if (Object.keys(body).length === 0) throw fail('agent.no_fields')
      if ((await edge.db.maybeOne(updateAgent(slug, body))) === null) throw fail('agent.missing')
      const { temperature, maxTokens } = edge.settings.ai
      return json((await edge.reader.text(readAgent, [temperature, maxTokens, slug]))!)
    },
  }),
]
