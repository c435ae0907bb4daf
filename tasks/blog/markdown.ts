import { writeYaml } from './yaml.ts'

/** Front matter of an exported post. */
export interface PostMatter {
  readonly title: string
  readonly slug: string
  readonly [key: string]: unknown
}

/** Formats a post as Markdown with front matter; importing the file yields the same post. */
export function toMarkdown({ content, ...matter }: PostMatter & { readonly content: string }): string {
  return `---\n${writeYaml(matter)}---\n${content}`
}
