import { area } from '../../pipeline/route.ts'
import { agentRoutes } from './agents.ts'
import { budgetRoutes } from './budgets.ts'
import { chatRoutes } from './chat.ts'
import { completionRoutes } from './completions.ts'
import { conversationRoutes } from './conversations.ts'
import { sentimentRoutes } from './sentiment.ts'
import { healthRoute, versionRoute } from './status.ts'
import { usageRoutes } from './usage.ts'

export const ai = area('ai', '/api/v1/ai', { auth: 'open', invalidStatus: 400 }, [
  ...chatRoutes,
  ...conversationRoutes,
  ...agentRoutes,
  ...usageRoutes,
  ...budgetRoutes,
  ...sentimentRoutes,
  healthRoute,
])

/** Area of OpenAI's protocol, whose clients expect this prefix. */
export const aiCompletions = area(
  'ai',
  '/v1',
  { auth: 'open', invalidStatus: 400, errorFormat: 'openai' },
  completionRoutes,
)

/** Area of the version route, which is outside the versioned prefix. */
export const aiVersion = area('ai', '/ai', { auth: 'open', invalidStatus: 400 }, [versionRoute])
