import { decodeLatin1 } from '../../../tasks/formats/encodings.ts'
import { openCms } from './cms.ts'
import { type Attachment, ENCRYPTED_MAIL, type MailParts } from './mail.ts'
import { chooseVersion } from './mail-versions.ts'
import { isTnef, readTnef } from './tnef.ts'

/** Opens attachments of mails that hold other files: TNEF and S/MIME. */

/** Reads a MIME entity, such as the content of a signed mail. */
type ReadEntity = (bytes: Uint8Array) => Promise<MailParts>

const CMS_TYPE = /^application\/(x-)?pkcs7-mime$/i

/**
 * Replaces each envelope among the attachments by its content: its body completes the mail's body, its files become
 * attachments. An envelope that cannot be opened stays an attachment.
 */
export async function unwrapMail(mail: MailParts, readEntity: ReadEntity): Promise<MailParts> {
  const attachments: Attachment[] = []
  let { body, markdown = null, detail } = mail
  for (const attachment of mail.attachments) {
    const opened = await openEnvelope(attachment, readEntity).catch(() => null)
    if (opened === null) attachments.push(attachment)
    else {
      const chosen = chooseVersion(body, opened.body)
      if (chosen !== body) markdown = chosen === opened.body ? (opened.markdown ?? null) : null
      body = chosen
      detail ??= opened.detail
      attachments.push(...opened.attachments)
    }
  }
  return { ...mail, body, markdown, attachments, detail }
}

/** The content of an envelope. Its headers are those of its mail and appear once. */
type Envelope = Omit<MailParts, 'headers'>

async function openEnvelope(attachment: Attachment, readEntity: ReadEntity): Promise<Envelope | null> {
  const { name, mediaType, bytes } = attachment
  if (isTnef(bytes)) return readTnef(bytes)
  // Outlook stores a signed mail as one attachment of this type.
  if (mediaType === 'multipart/signed') return readEntity(bytes)
  if (!CMS_TYPE.test(mediaType) && !/\.p7m$/i.test(name)) return null
  const content = openCms(bytes)
  if (content === null) return null
  if (content === 'encrypted') return { body: '', attachments: [attachment], detail: ENCRYPTED_MAIL }
  if (isMimeEntity(content)) return readEntity(content)
  const inner = { name: name.replace(/\.p7m$/i, ''), mediaType: 'application/octet-stream', bytes: content }
  return { body: '', attachments: [inner], detail: null }
}

export const isMimeEntity = (bytes: Uint8Array): boolean =>
  /^\s*(?:[\w-]+:[^\n]*\n(?:[ \t][^\n]*\n)*)*?(?:content-type|mime-version):/i.test(
    decodeLatin1(bytes.subarray(0, 8192)),
  )
