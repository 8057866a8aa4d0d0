"""The host's pace: what the CPU takes for each kind of operation, in context.

Tiny tensors, so that the GPU waits for the host. Programs are layers of operations drawn at random, repeated as
a model repeats its layers, and tiny models of transformers (12 layers, width 64), whose modules' own Python
counts too. The operations that each runs are counted by a dispatch mode; least squares gives what each kind
takes. usage: host_pace.py OUT.json"""
import json, sys, time, random, gc
import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint
ns=time.perf_counter_ns; dev='cuda'
VIEWS={'view','t','transpose','permute','unsqueeze','squeeze','slice','select','expand','split','split_with_sizes','unbind','detach','alias','as_strided','_unsafe_view','_reshape_alias','chunk'}
def kind(name):
    if name in VIEWS: return 'view'
    if name in('mm','bmm','addmm','baddbmm'): return 'matmul'
    if name=='_to_copy': return 'cast'
    if name in('clone','copy_','contiguous'): return 'copy'
    if name in('cat','stack'): return 'cat'
    if name in('mean','sum','linalg_vector_norm','all','any'): return 'reduce'
    if name=='native_layer_norm': return 'layer_norm'
    if name=='native_layer_norm_backward': return 'layer_norm_bw'
    if 'attention' in name: return 'attention_bw' if 'backward' in name else 'attention'
    if name in('embedding','index','index_select','gather','masked_scatter'): return 'gather'
    if name=='embedding_dense_backward': return 'embedding_bw'
    if name in('convolution','convolution_backward'): return 'convolution'
    if name in('_softmax','_log_softmax'): return 'softmax'
    if name in('native_dropout',): return 'dropout'
    if name in('slice_backward','select_backward'): return 'slice_bw'
    if name in('empty','empty_like','new_empty','empty_strided','scalar_tensor','_local_scalar_dense','is_same_size','_has_compatible_shallow_copy_type'): return 'other'
    return 'pointwise'
class Count(TorchDispatchMode):
    def __init__(s): super().__init__(); s.c={}
    def __torch_dispatch__(s,f,types,args=(),kw=None):
        k=kind(f._schema.name.split('::')[1]); s.c[k]=s.c.get(k,0)+1
        return f(*args,**(kw or {}))
mods=[0]
def hook(m,a): mods[0]+=1
def nodes_of(loss):
    seen=set(); st=[loss.grad_fn]; acc=0
    while st:
        n=st.pop()
        if n is None or n in seen: continue
        seen.add(n)
        if 'AccumulateGrad' in n.name(): acc+=1
        st+= [x for x,_ in n.next_functions]
    return len(seen)-acc,acc
def sync(): torch.cuda.synchronize()
def measure(fwd,params,reps=7,packs=False):
    """forward and backward host times (least of reps) and counts"""
    h=nn.modules.module.register_module_forward_pre_hook(hook); mods[0]=0
    saved=[0]
    def pk(t): saved[0]+=1; return t
    with Count() as c:
        with torch.autograd.graph.saved_tensors_hooks(pk,lambda t:t): l=fwd()
    cf=dict(c.c,module=mods[0]); h.remove()
    nd,acc=nodes_of(l) if l.requires_grad else (0,0)
    cb={}
    if l.requires_grad:
        with Count() as c: l.backward()
        cb=dict(c.c,node=nd,accumulate=acc)
    for p in params: p.grad=None
    f,b=[],[]
    for r in range(reps):
        gc.collect() if r==0 else None; gc.disable(); sync()
        t=ns(); l=fwd(); t1=ns(); sync(); f.append((t1-t)/1e3)
        if l.requires_grad:
            t=ns(); l.backward(); b.append((ns()-t)/1e3)
        sync(); gc.enable()
        for p in params: p.grad=None
        del l
    med=lambda v: sorted(v)[len(v)//2] if v else 0.
    return cf,min(f),med(f),cb,min(b) if b else 0.,med(b),saved[0]
S,W=32,64
def ops(dt):
    w=[nn.Parameter(torch.randn(W,W,device=dev,dtype=dt)) for _ in range(256)]; b=[nn.Parameter(torch.randn(W,device=dev,dtype=dt)) for _ in range(256)]
    other=torch.float32 if dt!=torch.float32 else torch.bfloat16
    i=[0]
    def p(l): i[0]=(i[0]+1)%256; return l[i[0]]
    class Id(nn.Module):
        def forward(self,x,attention_mask=None,position_ids=None,**kw): return x
    lin=[nn.Linear(W,W,device=dev,dtype=dt,bias=k%2==0) for k in range(64)]; j=[0]
    def nl(): j[0]=(j[0]+1)%64; return lin[j[0]]
    m=Id(); 
    o={'scale':lambda x:x*0.5,'neg':lambda x:-x,'add':lambda x:x+1.0,'mulp':lambda x:x*p(b),'pow':lambda x:x.pow(2),'silu':lambda x:F.silu(x),'tanh':lambda x:torch.tanh(x),
     'cast':lambda x:x.to(other).to(dt),'mean':lambda x:x*x.mean(-1,keepdim=True),'view':lambda x:x.view(S,W).view(1,S,W),'transpose':lambda x:x.transpose(0,1).transpose(0,1),
     'unsq':lambda x:x.unsqueeze(1).squeeze(1),'copy':lambda x:x.view(1,S,4,16).transpose(1,2).contiguous().view(1,S,W),'rot':lambda x:torch.cat((-x[...,W//2:],x[...,:W//2]),-1),
     'linear':lambda x:nl()(x),'linear2':lambda x:F.linear(x,p(w)),'matmul':lambda x:torch.matmul(x,x.transpose(1,2))@x,'ln':lambda x:F.layer_norm(x,(W,),p(b),p(b)),
     'softmax':lambda x:F.softmax(x,-1,dtype=torch.float32).to(dt),'drop':lambda x:F.dropout(x,0.1,True),'expand':lambda x:x.view(1,4,S,16)[:,:,None].expand(1,4,1,S,16).reshape(1,S,W),
     'sdpa':lambda x:F.scaled_dot_product_attention(*(x.view(1,S,4,16).transpose(1,2),)*3,is_causal=True).transpose(1,2).contiguous().view(1,S,W),'module':lambda x:m(x,attention_mask=None,use_cache=False)}
    return o,w+b+[q for l in lin for q in l.parameters()]
rows=[]
def add(tag,fwd,params,**k):
    r=measure(fwd,params,**k); rows.append((tag,)+r)
rnd=random.Random(5); t0=time.time()
for dt,tag in ((torch.bfloat16,'bf16'),(torch.float32,'f32')):
    o,ps=ops(dt); names=list(o)
    for it in range(36):
        ws=[rnd.random()**4 for _ in names]; layer=rnd.choices(names,ws,k=40)
        x0=torch.randn(1,S,W,device=dev,dtype=dt)
        def fwd():
            h=x0.clone().requires_grad_()
            for _ in range(10):
                for n in layer: h=o[n](h)
            return h.float().sum()
        if it==0: measure(fwd,ps)
        add('random '+tag,fwd,ps,reps=4)
        if it%3==0:
            def fng():
                with torch.no_grad(): return fwd()
            add('random nograd '+tag,fng,ps,reps=4)
print('random',len(rows),round(time.time()-t0,1),flush=True)
import transformers as T
def tiny(attn,dt):
    k=dict(num_hidden_layers=12,num_attention_heads=4,hidden_size=64,intermediate_size=128)
    txt=dict(k,vocab_size=128,num_key_value_heads=2,max_position_embeddings=256,use_cache=False)
    L=[('llama',T.LlamaForCausalLM,T.LlamaConfig(**txt)),('qwen2',T.Qwen2ForCausalLM,T.Qwen2Config(**txt)),('qwen3',T.Qwen3ForCausalLM,T.Qwen3Config(**txt,head_dim=16)),
       ('gemma',T.GemmaForCausalLM,T.GemmaConfig(**txt,head_dim=16)),('gpt2',T.GPT2LMHeadModel,T.GPT2Config(n_layer=12,n_embd=64,n_head=4,vocab_size=128,use_cache=False)),
       ('opt',T.OPTForCausalLM,T.OPTConfig(hidden_size=64,ffn_dim=128,num_hidden_layers=12,num_attention_heads=4,vocab_size=128,word_embed_proj_dim=64,use_cache=False)),
       ('vit',T.ViTForImageClassification,T.ViTConfig(**k,image_size=64,num_labels=10)),('clip',T.CLIPVisionModel,T.CLIPVisionConfig(**k,image_size=64)),('siglip',T.SiglipVisionModel,T.SiglipVisionConfig(**k,image_size=64,patch_size=16))]
    for n,cls,cfg in L:
        torch.set_default_dtype(dt)
        with torch.device(dev): m=cls._from_config(cfg,attn_implementation=attn)
        torch.set_default_dtype(torch.float32); m.train(); yield n,m
detail={}
for attn,dt,ac in (('sdpa',torch.bfloat16,False),('eager',torch.bfloat16,False),('sdpa',torch.float32,True),('eager',torch.float32,False)):
    for n,m in tiny(attn,dt):
        ids=torch.randint(5,120,(1,32),device=dev); px=torch.randn(1,3,64,64,device=dev,dtype=dt)
        def fwd():
            with torch.autocast('cuda',dtype=torch.bfloat16,enabled=ac):
                if n in('vit',): return m(pixel_values=px,labels=torch.zeros(1,dtype=torch.long,device=dev)).loss
                if n in('clip','siglip'): return m(pixel_values=px).last_hidden_state.float().sum()
                return m(input_ids=ids,attention_mask=torch.ones_like(ids),labels=ids).loss
        ps=list(m.parameters())
        try:
            tag=f'{n} {attn} {"amp" if ac else dt}'
            add(tag,fwd,ps,reps=7); base=rows[-1]
            if not ac and hasattr(m,'gradient_checkpointing_enable') and attn=='sdpa':
                m.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant":False})
                f,b=[],[]
                for r in range(6):
                    sync(); t=ns(); l=fwd(); f.append((ns()-t)/1e3); sync(); t=ns(); l.backward(); b.append((ns()-t)/1e3); sync()
                    for p in ps: p.grad=None
                detail[tag]=dict(forward=base[2],backward=base[5],ckpt_forward=min(f),ckpt_backward=min(b),saved=base[7],layers=12)
        except Exception as ex: print('FAIL',n,attn,repr(ex)[:200],flush=True)
        del m
print('tiny',len(rows),round(time.time()-t0,1),flush=True)
# what each operation takes alone, again and again (warm caches): towards this least squares is drawn
def alone(f,n=300):
    for _ in range(20): f()
    l=[]
    for _ in range(5):
        sync(); t=ns()
        for _ in range(n): f()
        l.append((ns()-t)/1e3/n)
    sync(); return sorted(l)[2]
o,_=ops(torch.bfloat16); xg=torch.randn(1,S,W,device=dev,dtype=torch.bfloat16).requires_grad_()
A={n:alone(lambda:f(xg)) for n,f in o.items()}
emb=nn.Embedding(128,W,device=dev); idx=torch.randint(0,100,(1,S),device=dev)
conv=nn.Conv2d(3,W,8,8,device=dev); img=torch.randn(1,3,64,64,device=dev)
view=A['view']/2
FORWARD=dict(view=view,pointwise=(A['scale']+A['neg']+A['add']+A['tanh'])/4,matmul=A['linear2']-view*2,cast=A['cast']/2,copy=A['copy']-3*view,cat=A['rot']-A['neg']-2*view,reduce=A['mean']-A['scale'],layer_norm=A['ln'],attention=A['sdpa']-8*view,gather=alone(lambda:emb(idx)),softmax=A['softmax']-A['cast']/2,dropout=A['drop'],convolution=alone(lambda:conv(img)),module=A['module'],fixed=300.)
# backward alone was not measured by kind: proportions of what its nodes launch
BACKWARD=dict(node=3.,pointwise=6.,matmul=9.,cast=6.,copy=6.,cat=8.,reduce=8.,layer_norm_bw=20.,attention_bw=45.,embedding_bw=20.,slice_bw=14.,convolution=40.,accumulate=1.5,fixed=50.)
def fit(counts,time,prior,weight=1e-2):
    """Least squares of relative errors; each kind is drawn towards its prior under one common scale."""
    kinds=list(prior); p=[max(prior[k],0.1) for k in kinds]; rows=[]
    for r in rows_:
        c=dict(counts(r)); c['fixed']=1
        rows.append([c.get(k,0)/time(r) for k in kinds])
    dot=lambda a,b: sum(x*y for x,y in zip(a,b))
    s=sum(dot(r,p) for r in rows)/sum(dot(r,p)**2 for r in rows)
    x=[s*v for v in p]; L=weight*len(rows)
    for _ in range(60):
        for j in range(len(kinds)):
            g=sum(r[j]*(dot(r,x)-1) for r in rows)+L*(x[j]-s*p[j])/(s*p[j])**2
            x[j]=max(0.,x[j]-g/(sum(r[j]**2 for r in rows)+L/(s*p[j])**2))
    error=sorted(abs(dot(r,x)-1) for r in rows)
    print('median error',round(error[len(error)//2],3),'scale',round(s,2),flush=True)
    return dict(zip(kinds,x))
rows_=[r for r in rows if not r[0].startswith('random')]
f=fit(lambda r:r[1],lambda r:r[2],FORWARD); b=fit(lambda r:r[4],lambda r:r[5],BACKWARD)
med=lambda v: sorted(v)[len(v)//2]
RECORD=1.0  # what making a node adds to an operation: medians of the same operations with and without a graph
pace=dict(record=RECORD,view=f['view']-RECORD,module=f['module'],node=b['node'],accumulate=b['accumulate'],forward=f['fixed'],backward=b['fixed'])
pace['pack']=med([(d['ckpt_forward']-d['forward'])/d['saved'] for d in detail.values()])
pace['unpack']=med([(d['ckpt_backward']-d['backward']-d['forward'])/d['saved'] for d in detail.values()])
for k in('pointwise','matmul','cast','copy','cat','reduce','layer_norm','attention','gather','softmax','dropout','convolution'): pace[k]=f[k]-RECORD
for k in('pointwise','matmul','cast','copy','cat','reduce','convolution'): pace[k+' gradient']=b[k]
pace.update({'layer_norm gradient':b['layer_norm_bw'],'attention gradient':b['attention_bw'],'gather gradient':b['embedding_bw'],'copy into a part':b['slice_bw']})
out={'card':torch.cuda.get_device_name(),'software':f'PyTorch {torch.__version__}, transformers {T.__version__}','launch_latency_us':5.3,'pace':pace}
out['host']=open('/proc/cpuinfo').read().split('model name')[1].split('\n')[0].strip('\t: ')
z=torch.zeros((),device=dev)
def sl(f,n=60):
    for _ in range(5): f()
    l=[]
    for _ in range(n):
        sync(); t=ns(); f(); l.append((ns()-t)/1e3)
    return round(sorted(l)[n//2],2)
pace['wait']=sl(lambda:z.item())
def opt_cost(make,shape,dtype,cnts=(40,160),kind='opt'):
    l=[]
    for c in cnts:
        ps=[nn.Parameter(torch.randn(*shape,device=dev,dtype=dtype)) for _ in range(c)]
        o=make(ps); t_=[]
        for i in range(9):
            for p in ps: p.grad=torch.ones_like(p)
            sync(); gc.disable(); t=ns(); o(); t_.append((ns()-t)/1e3); gc.enable()
        l.append(min(t_[2:]))
    per=(l[1]-l[0])/(cnts[1]-cnts[0]); return {'per_tensor':round(per,3),'per_call':round(max(0,l[0]-per*cnts[0]),2)}
from transformers.optimization import Adafactor
mk={'adamw':lambda p:torch.optim.AdamW(p,lr=1e-6,foreach=True).step,'adamw_fused':lambda p:torch.optim.AdamW(p,lr=1e-6,fused=True).step,'adamw_loop':lambda p:torch.optim.AdamW(p,lr=1e-6,foreach=False,fused=False).step,'sgd':lambda p:torch.optim.SGD(p,lr=1e-6).step,'sgdm':lambda p:torch.optim.SGD(p,lr=1e-6,momentum=.9).step,'adafactor':lambda p:Adafactor(p,lr=1e-6,scale_parameter=False,relative_step=False).step,'adafactor_torch':lambda p:torch.optim.Adafactor(p,lr=1e-6).step,'clip':lambda p:(lambda:torch.nn.utils.clip_grad_norm_(p,1.0)),'zero_grad':lambda p:(lambda o=torch.optim.SGD(p,lr=.1):o.zero_grad(set_to_none=True))}
def scaler(p):
    o=torch.optim.SGD(p,lr=0.1); s=torch.amp.GradScaler('cuda'); s.scale(torch.ones((),device=dev))
    def f(): s.step(o); s.update()
    return f
mk['scaler_and_sgd']=scaler
for n,make in mk.items():
    name='scaler' if n.startswith('scaler') else n
    cost=[[opt_cost(make,shape,dt) for dt in (torch.bfloat16,torch.float32) if dt==torch.float32 or name!='scaler'] for shape in ((16,16),(16,))]
    pace[name+' matrix'],pace[name+' vector']=[min(c['per_tensor'] for c in l) for l in cost]
    pace[name+' step']=med([c['per_call'] for l in cost for c in l])
json.dump(out,open(sys.argv[1],'w'),indent=1)
