import type { Queries } from '../../../sql/db.ts'
import {
  findVoiceSettings,
  lockVoiceSettings,
  type VoiceSettings as Stored,
  storeVoiceSettings,
} from '../../../sql/voice/previews.ts'
import { applyChange, DEFAULT_VOICE_SETTINGS } from '../../../tasks/voice/settings.ts'
import { route } from '../../pipeline/route.ts'
import { VoiceSettings, VoiceSettingsChange } from './shapes.ts'

/** Routes for the voice settings, which all users share. */
export const voiceSettingsRoutes = [
  route({
    method: 'get',
    path: '/settings',
    summary: 'Get the voice settings',
    response: VoiceSettings,
    handle: ({ edge }) => readVoiceSettings(edge.db),
  }),

  route({
    method: 'post',
    path: '/settings',
    summary: 'Update the voice settings',
    description: `Changes only the given fields; ids are those of the catalog. Changing only a provider also sets its \
first model and voice. All users share the settings: with \`AUTH_LEVEL\` \`rbac\`, only admins may change them, unless the \
area is open.`,
    auth: 'operator',
    body: VoiceSettingsChange,
    response: VoiceSettings,
    errors: ['voice.unknown'],
    whyRepeatable: 'a repeat sets the same values',
    handle: ({ body, caller, transaction }) =>
      transaction(async (tx) => {
        await tx.run(lockVoiceSettings())
        const change = Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined))
        const after = applyChange(await readVoiceSettings(tx), change)
        await tx.run(storeVoiceSettings(after, caller.ownerId))
        return after
      }),
  }),
]

export async function readVoiceSettings(db: Queries): Promise<Stored> {
  return (await db.maybeOne(findVoiceSettings())) ?? DEFAULT_VOICE_SETTINGS
}
