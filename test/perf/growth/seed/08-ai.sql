-- 200,000 conversations of four turns with usage and scores. A tenth belong to the big owner, and one conversation is
-- long.

create table growth.conversation as
select n, growth.id(at) as id, at, owner, 4 as turns from growth.size(200000) size, generate_series(1, size) n,
  growth.moment(n, size, '1 year') at, growth.owner(n, size, 10, growth.size(10000)) owner;
update growth.conversation set turns = growth.size(10000) where n = (select min(n) from growth.conversation where owner = 2);

insert into ai_conversation (id, user_id, owner_id, title, provider, model, last_response_ms, created_at, updated_at)
select id, owner::text, owner, 'About ' || growth.word(n), 'openai', 'gpt-4.1', 900, at, at + interval '1 hour'
from growth.conversation order by n;

create table growth.turn as
select c.*, turn, growth.id(c.at) as question, growth.id(c.at) as answer, null::uuid as before, c.at + interval '1 second' * turn as asked
from growth.conversation c, generate_series(1, turns) turn;
update growth.turn t set before = b.before
from (select question, lag(answer) over (partition by n order by turn) as before from growth.turn) b where b.question = t.question;
insert into ai_message (id, conversation_id, parent_id, role, status, content, job_id, provider, model, response_ms, created_at, settled_at)
select case role when 'user' then question else answer end, id,
  case role when 'user' then before else question end, role, 'complete',
  (select string_agg(growth.word(1 + growth.pick(n * 16 + turn, k, 3000)), ' ') from generate_series(1, 12) k),
  case role when 'assistant' then gen_random_uuid() end, case role when 'assistant' then 'openai' end,
  case role when 'assistant' then 'gpt-4.1' end, case role when 'assistant' then 900 end, asked, asked
from growth.turn, unnest('{user,assistant}'::text[]) role order by n, turn, role desc;

insert into ai_usage (user_id, owner_id, conversation_id, message_id, action, vendor, model, input_tokens, output_tokens, cost,
  estimated, success, created_at)
select owner::text, owner, id, answer, 'chat', 'openai', case when turn % 4 = 0 then 'gpt-4.1' else 'gpt-4.1-mini' end,
  200 + n % 500, 100 + n % 90, 0.0005, n % 9 = 0, n % 40 > 0, asked from growth.turn order by asked;

insert into ai_sentiment (conversation_id, owner_id, sentiment, performance, score, scored_at)
select id, owner, (array['positive', 'positive', 'neutral', 'neutral', 'neutral', 'neutral', 'neutral', 'neutral', 'negative', 'frustrated'])[1 + n % 10],
  (array['good', 'good', 'acceptable', 'poor'])[1 + n % 4], (n % 21 - 10) / 10.0, at + interval '1 day'
from growth.conversation where n % 4 > 0 order by n;
drop table growth.conversation, growth.turn;
