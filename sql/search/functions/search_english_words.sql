-- Returns the common words of English as keys of an object, see `search_is_common`. It is immutable, so a statement builds it once.
create or replace function search_english_words() returns jsonb language sql immutable parallel safe as $$
  select jsonb_object_agg(word, true) from regexp_split_to_table(
    'about above across after afterwards again against ain all almost alone along already also although always am among amongst
    an and another any anybody anyhow anyone anything anyway anyways anywhere apart are aren around as aside at away be became
    because become becomes becoming been before beforehand behind being below beside besides between beyond both but by came
    can cannot cant come comes could couldn did didn do does doesn doing don done down during each either else elsewhere etc
    even ever every everybody everyone everything everywhere except few for former formerly from further furthermore get gets
    getting give given gives go goes going gone got had hadn has hasn have haven having he hence her here hereafter hereby
    herein hers herself him himself his hither how howbeit however ie if in inasmuch indeed instead into inward is isn it its
    itself just keep keeps kept know known knows last lately later latter latterly least less lest let like likely ll made
    mainly make makes many may maybe me meanwhile merely might mine more moreover most mostly much must my myself namely near
    nearly neither never nevertheless next no nobody non none noone nor not nothing now nowhere of off often on once one ones
    only onto or other others otherwise ought our ours ourselves out outside over own per perhaps please possible probably
    quite rather re really regarding said same saw say saying says see seeing seem seemed seeming seems seen self selves
    several shall she should shouldn since so some somebody somehow someone something sometime sometimes somewhat somewhere
    soon still such take taken tell than that the their theirs them themselves then thence there thereafter thereby therefore
    therein thereof thereupon these they this those though through throughout thru thus to together too toward towards tried
    try trying under unless unlike until unto up upon us use used useful uses using usually ve various very via want wants was
    wasn way we well went were weren what whatever when whence whenever where whereafter whereas whereby wherein whereupon
    wherever whether which while whither who whoever whole whom whose why will with within without won would wouldn yes yet
    you your yours yourself yourselves', '\s+') word
$$;
