-- The agent for conversations that do not name one.
insert into ai_agent (slug, name, description, system_prompt) values ('assistant', 'Assistant',
  'Answers in conversations that name no other agent', 'You are a helpful assistant.');
